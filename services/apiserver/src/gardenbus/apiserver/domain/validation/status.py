"""Rules of the status fields that services read, whoever reported them."""

import re

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, unique
from gardenbus.apiserver.domain.validation.shared import RANGES, check_instant, check_quantities
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.networks import is_canonical, parse_cidr
from gardenbus.common.api.shown_values import shown

_CONDITION_STATES = ("True", "False", "Progressing", "Unknown")
_CONDITION_TEXTS = ("reason", "message", "lastTransitionTime", "lastUpdateTime")
_MOST_PERCENT = 100
_ADDRESS = re.compile(r"https://(\[[0-9A-Fa-f:.]+\]|[^\s@/?#:\[\]]+)(:[0-9]*)?(/[^\s?#]*)?")


def check_status(manifest: FieldCursor) -> FieldCursor:
    """Check conditions, constraints, operation and generation; returns the status for the kind's own rules."""
    status = manifest.section("status")
    for field in ("conditions", "constraints"):
        check_conditions(status, field)
    status.integer("observedGeneration", least=0)
    _check_operation(status)
    return status


def check_seed_status(manifest: FieldCursor) -> None:
    """Note also wrong quantities and the certificate's end."""
    status = check_status(manifest)
    capacity = check_quantities(status, "capacity")
    for resource, amount in check_quantities(status, "allocatable").items():
        if amount > capacity.get(resource, amount):
            given = status.section("allocatable").content[resource], status.section("capacity").content[resource]
            status.section("allocatable").add_error(resource, "{} is more than the capacity of {}".format(*given))
    check_instant(status, "clientCertificateExpirationTimestamp")


def check_shoot_status(manifest: FieldCursor) -> None:
    """Note also a wrong seed, technical name, errors and ranges in use."""
    status = check_status(manifest)
    for field in ("seedName", "technicalID", "uid"):
        status.text(field)
    for entry in status.entries("lastErrors"):
        entry.text("description")
        entry.texts("codes")
    networking = status.section("networking")
    for field in (*RANGES, "egressCIDRs"):
        for path, text in networking.texts(field) if networking.has(field) else ():
            if not is_canonical(text):
                networking.errors.add_error(path, _range_problem(text))
    addresses = status.entries("advertisedAddresses") if status.has("advertisedAddresses") else ()
    for address in addresses:
        if address.text("name", required=True):
            address.text("url", required=True, rule=_url_problem)
    unique(addresses, "name")


def check_shoot_status_update(manifest: FieldCursor, old: Document) -> None:
    """Note identities in a Shoot's status that change, as they name what there is on the seed."""
    status, before = manifest.section("status"), section(old, "status")
    for field in ("uid", "technicalID", "clusterIdentity"):
        if status:
            status.same_as(before, field, "what is on the seed is called so")


def check_seed_status_update(manifest: FieldCursor, old: Document) -> None:
    """Note another identity of a Seed's cluster."""
    manifest.section("status").same_as(section(old, "status"), "clusterIdentity", "the seed's cluster is called so")


def check_project_status_update(manifest: FieldCursor, old: Document) -> None:
    """Note a phase that is taken away."""
    status = manifest.section("status")
    if section(old, "status").get("phase") and not status.text("phase"):
        status.add_error("phase", "cannot be taken away, once there is one")


def _range_problem(text: str) -> str:
    try:
        return f"{text} has bits of hosts: write {parse_cidr(text)}"
    except ValueError as error:
        return str(error)


def _url_problem(text: str) -> str:
    """Problem of an address that is no `https://host[:port]`. Source: Gardener's `validateAdvertisedURL`."""
    return "" if _ADDRESS.fullmatch(text) else f"{shown(text)} must be as https://host:port, without user and query"


def check_conditions(status: FieldCursor, field: str) -> None:
    """Note conditions without type, of an unknown status, and repeated ones."""
    conditions = status.entries(field)
    for condition in conditions:
        condition.text("type", required=True)
        condition.choice("status", _CONDITION_STATES, required=True)
        for text in _CONDITION_TEXTS:
            condition.text(text)
        condition.texts("codes")
        condition.integer("observedGeneration", least=0)
    unique(conditions, "type")


def _check_operation(status: FieldCursor) -> None:
    operation = status.section("lastOperation")
    for field in ("type", "state", "description"):  # reports come in parts, and the parts in any order
        operation.text(field)
    operation.text("lastUpdateTime")
    operation.integer("progress", least=0, most=_MOST_PERCENT)
