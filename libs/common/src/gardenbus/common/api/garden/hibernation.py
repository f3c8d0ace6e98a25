"""Hibernation schedules of a Shoot: when it goes to sleep, and when it wakes up.

Source: Gardener's `pkg/utils/hibernation` and `pkg/controllermanager/controller/shoot/hibernation`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, only_text
from gardenbus.common.api.garden.cron_schedules import CronSchedule, location_of, parse_cron
from gardenbus.common.errors import FieldProblem

SCHEDULES_PATH = "spec.hibernation.schedules"


class HibernationEdge(NamedTuple):
    """A schedule by which the shoot goes to sleep, or wakes up."""

    schedule: CronSchedule
    hibernates: bool


class LatestEdge(NamedTuple):
    """An instant at which the shoot should have gone to sleep, or woken up."""

    at: datetime
    hibernates: bool


def is_hibernation_enabled(shoot_spec: Document) -> bool:
    """True when the cluster shall sleep."""
    return section(shoot_spec, "hibernation").get("enabled") is True


def edges_of(shoot_spec: Document) -> Sequence[HibernationEdge]:
    """The edges of all schedules, in their order. Raises ValueError for a schedule that cannot be read."""
    return [
        HibernationEdge(CronSchedule(parse_cron(text), location_of(only_text(schedule.get("location")))), hibernates)
        for schedule in _schedules(shoot_spec)
        for field, hibernates in (("start", True), ("end", False))
        if (text := only_text(schedule.get(field)))
    ]


def latest_edge(edges: Sequence[HibernationEdge], since: datetime, now: datetime) -> LatestEdge | None:
    """The edge that was passed last after `since`; of several at one instant the first in the list."""
    passed = [
        LatestEdge(at, edge.hibernates) for edge in edges if (at := edge.schedule.last_between(since, now)) is not None
    ]
    return max(passed, key=lambda edge: edge.at, default=None)


def next_edge_at(edges: Sequence[HibernationEdge], now: datetime) -> datetime | None:
    """The instant of the next edge; None without one."""
    return min((at for edge in edges if (at := edge.schedule.next_after(now)) is not None), default=None)


def schedule_problems(shoot_spec: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Problems of the schedules. Source: `ValidateHibernationSchedules` in `pkg/api/core/validation/shoot.go`."""
    seen: set[str] = set()
    for index, schedule in enumerate(_schedules(shoot_spec)):
        path = f"{SCHEDULES_PATH}[{index}]"
        if schedule.get("start") is None and schedule.get("end") is None:
            yield FieldProblem(path, "must have a start, an end, or both")
        for field in ("start", "end"):
            if schedule.get(field) is not None:
                yield from _cron_problems(f"{path}.{field}", schedule[field], seen)
        location = schedule.get("location")
        if location is not None:
            yield from _problem_of(location_of, f"{path}.location", location)


def _cron_problems(path: str, text: object, seen: set[str]) -> Iterator[FieldProblem]:
    yield from _problem_of(parse_cron, path, text)
    if isinstance(text, str):
        if text in seen:
            yield FieldProblem(path, f"stands here twice: {text[:80]!r}")
        seen.add(text)


def _problem_of(parse: Callable[[str], object], path: str, text: object) -> Iterator[FieldProblem]:
    if not isinstance(text, str):
        yield FieldProblem(path, "must be a text")
        return
    try:
        parse(text)
    except ValueError as error:
        yield FieldProblem(path, f"{error}")


def _schedules(shoot_spec: Mapping[str, Any]) -> Sequence[Document]:
    return mappings(section(shoot_spec, "hibernation").get("schedules"))
