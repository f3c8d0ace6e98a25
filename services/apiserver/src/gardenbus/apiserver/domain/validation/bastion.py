"""Rules of Bastions: who may come in, and from where.

Source: Gardener's `pkg/apis/operations/validation/bastion.go`.
"""

import re
from datetime import datetime

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.networks import is_cidr
from gardenbus.common.api.shown_values import shown
from gardenbus.common.ports.clock import parse_timestamp

_PUBLIC_KEY = re.compile(r"\s*(ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+\s+[A-Za-z0-9+/]{8,}={0,2}(\s.*)?", re.DOTALL)


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a Bastion, in what changes."""
    spec, before = manifest.section("spec", required=True), section(old or {}, "spec")
    shoot = spec.section("shootRef", required=True)
    shoot.text("name", required=True)
    spec.section("shootRef").same_as(section(before, "shootRef"), "name", "make a new bastion")
    if old is None or spec.content.get("sshPublicKey") != before.get("sshPublicKey"):
        spec.text("sshPublicKey", required=True, rule=_key_problem)
    spec.same_as(before, "sshPublicKey", "make a new bastion")
    if old is None or spec.content.get("ingress") != before.get("ingress"):
        _check_ingress(spec)


def check_heartbeat(manifest: FieldCursor, now: datetime) -> None:
    """Note a heartbeat in the future in the status of a Bastion."""
    status = manifest.section("status")
    heartbeat = parse_timestamp(status.text("lastHeartbeatTimestamp"))
    if heartbeat is not None and heartbeat > now:
        status.add_error("lastHeartbeatTimestamp", "is in the future: leave it to the controller")


def _check_ingress(spec: FieldCursor) -> None:
    rules = spec.entries("ingress")
    if not spec.content.get("ingress"):
        spec.add_error(
            "ingress", "is needed: write the addresses it may be reached from, as ingress: [{ipBlock: {cidr: …}}]"
        )
    for rule in rules:
        rule.section("ipBlock", required=True).text("cidr", required=True, rule=_range_problem)


def _key_problem(key: str) -> str:
    return "" if _PUBLIC_KEY.fullmatch(key) else "is no public key: write it as ssh-ed25519 AAAA…"


def _range_problem(text: str) -> str:
    return "" if is_cidr(text) else f"{shown(text)} is not a network range: write it as 203.0.113.7/32"
