"""Order of shoots that wait for a seed: priority, its bands, and the gates that keep a shoot out of the order.

| band | priority | is guaranteed of a batch, while it has messages |
|---|---|---|
| `+1` | above 0 | what is left |
| `` | 0 | a tenth |
| `-1` | below 0 | a twentieth |

PURE. The names of bands are tokens of queue subjects; that of the middle one is left out.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from gardenbus.common.api.document import Document, section

ItemT = TypeVar("ItemT")

HIGH, NORMAL, LOW = "+1", "", "-1"
BANDS = (HIGH, NORMAL, LOW)
"""In the order in which they go ahead of each other."""

LEAST_PRIORITY, MOST_PRIORITY = -1_000, 1_000_000

MAX_PRIORITY = "scheduling.gardenbus.io/max-priority"
"""On a Project: the priority up to which whoever may write a Shoot may state one."""

STARVATION_SECONDS = 1_800.0
"""Waiting time that counts as one band more, so that nobody waits behind others for ever."""

_WHOLE = re.compile(r"-?[0-9]{1,7}")
_NORMAL_SHARE, _LOW_SHARE = 10, 20


class Shares(NamedTuple):
    """Messages of a batch by band."""

    high: int
    normal: int
    low: int


def max_priority(project: Document | None) -> int:
    """The priority that a Project allows whoever may write its Shoots: 0 unless it states another one."""
    stated = str(section(project or {}, "metadata", "annotations").get(MAX_PRIORITY))
    return int(stated) if _WHOLE.fullmatch(stated) else 0


def max_priority_problem(project: Mapping[str, Any]) -> str:
    """Problem of the allowance of a Project; "" where it is a whole number, or not stated."""
    stated = str(section(project, "metadata", "annotations").get(MAX_PRIORITY, "0"))
    if _WHOLE.fullmatch(stated) and LEAST_PRIORITY <= int(stated) <= MOST_PRIORITY:
        return ""
    return f"must be a whole number from {LEAST_PRIORITY} to {MOST_PRIORITY}, as '100'"


def band_of(priority: int) -> str:
    """The band of a priority."""
    return HIGH if priority > 0 else LOW if priority < 0 else NORMAL


def _part(batch: int, share: int) -> int:
    """A share of a batch: one message at least, where there is room for one of each band."""
    return max(batch // share, 1 if batch >= len(BANDS) else 0)


def shares(batch: int, *, high: int, normal: int, low: int) -> Shares:
    """The shares of a batch where so many messages wait in each band."""
    of_normal, of_low = min(normal, _part(batch, _NORMAL_SHARE)), min(low, _part(batch, _LOW_SHARE))
    of_high = min(high, batch - of_normal - of_low)
    of_normal = min(normal, batch - of_high - of_low)
    return Shares(of_high, of_normal, min(low, batch - of_high - of_normal))


def in_turn(
    items: Sequence[ItemT], *, priority: Callable[[ItemT], int], project: Callable[[ItemT], str], takes_turns: bool
) -> Sequence[ItemT]:
    """Order a batch: by priority, then projects in turn, the one whose shoot came first ahead, then by arrival."""
    priorities = [priority(each) for each in items]
    if not any(priorities) and not takes_turns:
        return items
    turns: dict[tuple[int, str], int] = {}
    keys: list[tuple[int, int, int]] = []
    for number, (each, stated) in enumerate(zip(items, priorities, strict=True)):
        of = (stated, project(each))
        turn = turns.get(of, 0)
        turns[of] = turn + 1
        keys.append((-stated, turn if takes_turns else 0, number))
    return [items[number] for _, _, number in sorted(keys)]


def activation_order(priority: int, waited_seconds: float, name: str) -> tuple[int, int, str]:
    """The sort key of a class of waiting shoots: by band with age, then priority, then name."""
    band = (priority > 0) - (priority < 0) + int(waited_seconds // STARVATION_SECONDS)
    return (-band, -priority, name)
