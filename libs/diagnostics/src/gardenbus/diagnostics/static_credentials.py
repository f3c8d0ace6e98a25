"""Check of issued credentials: those that are good for so long that they are as good as static."""

import base64
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.issued_credentials import CREDENTIALS, PURPOSE_LABEL
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.diagnostics.findings import DiagnosticFinding, some_of
from gardenbus.diagnostics.target import DiagnosticsTarget

LONGEST_LIFE = timedelta(days=90)
PAGE = 500


class _SecretsPage(msgspec.Struct):
    items: list[Document]
    next: str = msgspec.field(name="continue", default="")


class _SecretsResponse(msgspec.Struct):
    result: _SecretsPage


async def static_credentials(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Finding for credentials without an end, or with one that is far from their creation."""
    found: list[Document] = []
    query = {"limit": PAGE, "labelSelector": f"{PURPOSE_LABEL}={CREDENTIALS}"}
    subject = target.api.subjects.api(f"list.secret.{GARDEN_NAMESPACE}")
    while True:
        reply = await target.api.bus.request(subject, msgspec.json.encode(query), timeout_seconds=5.0)
        try:
            page = decode_json(reply, _SecretsResponse).result
        except msgspec.DecodeError:
            return [DiagnosticFinding("credentials", "skipped", "no apiserver reports issued credentials")]
        found += page.items
        if not page.next:
            return assess_credentials(target, found)
        query["continue"] = page.next


def assess_credentials(target: DiagnosticsTarget, secrets: Sequence[Document]) -> list[DiagnosticFinding]:
    """Finding for the Secrets that issued credentials are checked with."""
    static = sorted(
        f"{_text(each, 'user')} ({section(each, 'metadata').get('name')})" for each in secrets if _is_static(each)
    )
    if not static:
        text = f"{len(secrets)} issued, each for {LONGEST_LIFE.days} days at most"
        return [DiagnosticFinding("credentials", "ok", text)]
    what = f"good for more than {LONGEST_LIFE.days} days, or without a readable end: {some_of(static)}"
    suggestion = f"issue others with a shorter --ttl, then delete these Secrets: {target.command('identity ls')}"
    return [DiagnosticFinding("credentials", "warning", what, suggestion)]


def _is_static(secret: Document) -> bool:
    expires = parse_timestamp(_text(secret, "expires"))
    created = parse_timestamp(section(secret, "metadata").get("creationTimestamp")) or datetime.min.replace(tzinfo=UTC)
    return expires is None or expires - created > LONGEST_LIFE


def _text(secret: Document, field: str) -> str:
    try:
        return base64.b64decode(str(section(secret, "data").get(field, ""))).decode()
    except ValueError:
        return ""
