"""Stored objects that break a rule by now: one that is newer than the version that stored them."""

import time
from collections.abc import Sequence

import msgspec

from gardenbus.cli.output.console import counted
from gardenbus.common.api.decoding import decode_json
from gardenbus.diagnostics.findings import DiagnosticFinding, some_of
from gardenbus.diagnostics.target import DiagnosticsTarget

CHECK = "stored rules"
SECONDS = 10.0
"""After this long no further objects are checked: a check that takes longer than 20 s would count as failed."""

MOST_RULES = 20
"""Rules of which each has its finding."""

_OBJECTS = "objects."


class BrokenFieldRule(msgspec.Struct):
    """A rule of a field, and the objects that break it: how many, and the names of some."""

    field: str
    message: str
    objects: int
    names: list[str]


class _RulesPage(msgspec.Struct):
    checked: int
    rules: list[BrokenFieldRule]
    continue_token: str | None = msgspec.field(default=None, name="continue")


class _RulesResponse(msgspec.Struct):
    result: _RulesPage


async def rules(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Check what is stored, kind by kind, for as long as there is time."""
    stored = {
        name.removeprefix(_OBJECTS): count
        for name, count in (await target.api.census()).items()
        if name.startswith(_OBJECTS) and count
    }
    ends_at, checked = time.monotonic() + SECONDS, 0
    broken: dict[tuple[str, str], BrokenFieldRule] = {}
    for kind in sorted(stored, key=lambda kind: (stored[kind], kind)):
        token: str | None = ""
        while token is not None:
            if time.monotonic() > ends_at:
                return assess_stored(broken, checked, is_whole=False)
            page = await _page(target, kind, token)
            if page is None:
                return [DiagnosticFinding(CHECK, "skipped", "no apiserver checks what is stored")]
            checked += page.checked
            for rule in page.rules:
                earlier = broken.setdefault((kind, rule.field), rule)
                if earlier is not rule:
                    earlier.objects += rule.objects
            token = page.continue_token
    return assess_stored(broken, checked, is_whole=True)


async def _page(target: DiagnosticsTarget, kind: str, token: str) -> _RulesPage | None:
    query = msgspec.json.encode({"continue": token} if token else {})
    reply = await target.api.bus.request(target.api.subjects.api(f"invalid.{kind}"), query, timeout_seconds=SECONDS)
    try:
        return decode_json(reply, _RulesResponse).result
    except msgspec.DecodeError:  # of an older apiserver, or of those who may not list the kind
        return None


def assess_stored(
    broken: dict[tuple[str, str], BrokenFieldRule], checked: int, *, is_whole: bool
) -> list[DiagnosticFinding]:
    """A finding for each rule that is broken, the most frequent first; one that all is well where none is."""
    rest = "" if is_whole else f"; there are more, of which none was checked within {SECONDS:g} s"
    if not broken:
        return [DiagnosticFinding(CHECK, "ok", f"{counted(checked, 'stored object')} break no rule{rest}")]
    order = sorted(broken.items(), key=lambda each: (-each[1].objects, each[0]))
    advice = "it can be changed elsewhere, and deleted; mend the field: its next change is checked"
    findings = [
        DiagnosticFinding(
            CHECK,
            "warning",
            f"{kind} {rule.field}: {counted(rule.objects, 'stored object')} against a rule by now, as"
            f" {some_of(rule.names)} ({rule.message})",
            advice,
        )
        for (kind, _), rule in order[:MOST_RULES]
    ]
    if more := len(order) - MOST_RULES:
        findings += [DiagnosticFinding(CHECK, "warning", f"{more} rules more are broken", advice)] if more > 0 else []
    if rest:
        findings.append(DiagnosticFinding(CHECK, "skipped", f"{counted(checked, 'stored object')} checked{rest}"))
    return findings
