"""What a decision comes to. A refusal is a value with its reasons, no exception."""

from collections.abc import Sequence

import msgspec

_NAMED_SEEDS = 12


class Rejection(msgspec.Struct, frozen=True):
    """Why one seed will not do: the rule, and its words."""

    seed: str
    rule: str
    detail: str


class Step(msgspec.Struct, frozen=True):
    """One rule that turned seeds away, and how many were left after it."""

    rule: str
    rejected: int
    left: int


class Grounds(msgspec.Struct, frozen=True):
    """What all decisions on one class share: the funnel of the rules that ask for neither networks nor capacity.

    It is worked out once a class. `kept` are the seeds that are left after it, `rejections` counts those that each rule
    turned away.
    """

    considered: int = 0
    funnel: tuple[Step, ...] = ()
    kept: int = 0
    rejections: dict[str, int] = msgspec.field(default_factory=dict[str, int])


class RunnerUp(msgspec.Struct, frozen=True):
    """The seed that would have been next, and its shoots."""

    seed: str
    usage: int


class Placement(msgspec.Struct, frozen=True):
    """The seed chosen. `usage` is its shoots before this one, `distance` None when the strategy measures none.

    `considered` counts all seeds, `eligible` those that were as near and had no rule against them or were not asked.
    `nearer` seeds had no rule against them either, but no room, or networks that clash. `runner_up` is as near as the
    one chosen; None when there is no other, or when finding it would take long.
    """

    seed: str
    gate: int | None
    strategy: str
    distance: int | None
    usage: int
    considered: int
    eligible: int
    capacity: int | None = None
    nearer: int = 0
    runner_up: RunnerUp | None = None
    grounds: Grounds = Grounds()


class Refusal(msgspec.Struct, frozen=True):
    """No seed fits: the rule after which none was left, the sentence for people, and the rejections so far."""

    rule: str
    message: str
    rejections: tuple[Rejection, ...] = ()


Outcome = Placement | Refusal


class Ranked(msgspec.Struct, frozen=True):
    """A seed that fits: its place in the order (1 is chosen) and what the order goes by."""

    seed: str
    place: int
    distance: int | None
    usage: int
    capacity: int | None


class Explanation(msgspec.Struct, frozen=True):
    """A decision with all of its grounds: every seed is either ranked or rejected.

    `funnel` are the rules that rejected any, in the order in which they were asked.
    """

    outcome: Outcome
    strategy: str
    funnel: tuple[Step, ...]
    ranking: tuple[Ranked, ...]
    rejections: tuple[Rejection, ...]


def listed(rejections: Sequence[Rejection]) -> str:
    """`{a => reason, b => reason}` by name; grouped by reason with counts when the seeds are many."""
    if len(rejections) <= _NAMED_SEEDS:
        named = sorted(rejections, key=lambda rejection: rejection.seed)
        return "{" + ", ".join(f"{rejection.seed} => {rejection.detail}" for rejection in named) + "}"
    by_detail: dict[str, list[str]] = {}
    for rejection in rejections:
        by_detail.setdefault(rejection.detail, []).append(rejection.seed)
    groups = sorted(by_detail.items(), key=lambda group: (-len(group[1]), group[0]))
    shown = [f"{len(seeds)} seeds ({min(seeds)}, …) => {detail}" for detail, seeds in groups[:_NAMED_SEEDS]]
    if len(groups) > _NAMED_SEEDS:
        shown.append(f"{len(groups) - _NAMED_SEEDS} more reasons")
    return "{" + ", ".join(shown) + "}"
