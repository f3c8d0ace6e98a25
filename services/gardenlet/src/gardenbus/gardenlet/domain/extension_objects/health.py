"""Conditions of a shoot by what extensions report on their objects.

| found | condition of the same type |
|---|---|
| the extension's heartbeat is older than five minutes, or missing | Unknown, `<Kind>OutdatedHealthCheckReport` |
| Progressing | Progressing, `<Kind><reason>`, with the message |
| False, Unknown | False after its threshold, `<Kind>UnhealthyReport` |

Source: Gardener's `pkg/gardenlet/operation/care/health.go`.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from gardenbus.common.api.conditions import FALSE, UNKNOWN, conditions_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of, namespace_of, only_text
from gardenbus.common.api.garden.extensions import EXTENSION_NAMESPACE_PREFIX, KindType, resources_of
from gardenbus.common.ports.clock import parse_timestamp, timestamp
from gardenbus.gardenlet.domain.installations import STALE_AFTER, registration_in
from gardenbus.gardenlet.domain.shoot_status import CONDITIONS, ReportedProblem

PROGRESSING = "Progressing"
Heartbeats = Mapping[KindType, datetime | None]
"""Last heartbeats by what each extension acts on; None where one is missing."""


class ReportingObject(NamedTuple):
    """An extension object with what it says about the health of its shoot."""

    kind: str
    namespace: str
    name: str
    type: str
    conditions: Sequence[Document]


def reporting(kind: str, live: Document) -> ReportingObject | None:
    """The part of an object that its shoot's health depends on; None where it says nothing."""
    conditions = tuple(each for each in conditions_of(live) if each.get("type") in CONDITIONS)
    if not conditions:
        return None
    found = only_text(section(live, "spec").get("type"))
    return ReportingObject(kind, namespace_of(live), name_of(live), found, conditions)


def reported_problems(objects: Iterable[ReportingObject], heartbeats: Heartbeats, now: datetime) -> dict[str, str]:
    """Problems by condition: the first, in the order of the objects; one that is certain before others."""
    found: dict[str, ReportedProblem] = {}
    for each in objects:
        for condition in each.conditions:
            problem = _problem(each, condition, heartbeats, now)
            before = found.get(condition["type"])
            if problem is not None and (before is None or (before.status != FALSE and problem.status == FALSE)):
                found[condition["type"]] = problem
    return dict(found)


def heartbeats_by_kind(
    installations: Iterable[Document], registrations: Iterable[Document], leases: Iterable[Document]
) -> Heartbeats:
    """Heartbeats of the extensions that are installed on a seed."""
    times = {namespace_of(each): parse_timestamp(section(each, "spec").get("renewTime")) for each in leases}
    listed = list(registrations)
    found: dict[KindType, datetime | None] = {}
    for installation in installations:
        renewed = times.get(f"{EXTENSION_NAMESPACE_PREFIX}{name_of(installation)}")
        for resource in resources_of(registration_in(installation, listed) or {}):
            if resource.get("primary", True) is not False:
                found[only_text(resource.get("kind")), only_text(resource.get("type"))] = renewed
    return found


def _problem(
    each: ReportingObject, condition: Document, heartbeats: Heartbeats, now: datetime
) -> ReportedProblem | None:
    where = f"{each.kind} extension ({each.namespace}/{each.name})"
    if (each.kind, each.type) in heartbeats:
        renewed = heartbeats[each.kind, each.type]
        if renewed is None or now - renewed > STALE_AFTER:
            last = "never" if renewed is None else f"at {timestamp(renewed)}"
            text = f"{where} reports an outdated health status (last updated: {last})."
            return ReportedProblem(text, f"{each.kind}OutdatedHealthCheckReport", UNKNOWN)
    message = only_text(condition.get("message"))
    match condition.get("status"):
        case "True":
            return None
        case "Progressing":
            return ReportedProblem(message, f"{each.kind}{only_text(condition.get('reason'))}", PROGRESSING)
        case _:
            text = f"{where} reports failing health check: {message}"
            return ReportedProblem(text, f"{each.kind}UnhealthyReport", FALSE)
