"""Drain of a seed from its page: the plan as the scheduler explains it, in words. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from gardenbus.common.api.garden.moves import ExplainedDrain
from gardenbus.common.errors import Conflict

MOST_NAMED = 5
LONGEST_REASON = 160
"""Of a shoot that stays; its own page has all of it."""


class ShownDrain(msgspec.Struct, frozen=True):
    """Words of a plan: what it does, which has to be the same when it is carried out, and what follows from it."""

    does: Sequence[str]
    follows: Sequence[str]


def shown_drain(plan: ExplainedDrain, *, is_open: bool) -> ShownDrain:
    """Words of a plan; `is_open`: the seed takes new shoots by now. Raises Conflict where there is nothing to do."""
    if plan.obstacle and plan.shoots:
        raise Conflict(f"seed {plan.seed} cannot hand its shoots over: {plan.obstacle}")
    if not plan.moves and not is_open:
        raise Conflict(f"it is cordoned, and {_why_none(plan)}")
    does = ["it takes no new shoots"] if is_open else []
    if plan.moves:
        does.append(f"{counted(len(plan.moves))} on it {_verb(len(plan.moves), 'moves', 'move')} to other seeds")
    return ShownDrain(does, [*_targets(plan), *_stays(plan)])


def counted(shoots: int) -> str:
    """A number of shoots in words."""
    return f"{shoots} {_verb(shoots, 'shoot', 'shoots')}"


def outcome_words(moved: int, rejected: Sequence[str]) -> str:
    """Words of what was begun."""
    begun = f"{counted(moved)} {_verb(moved, 'is', 'are')} on the way to other seeds"
    if not rejected:
        return begun
    more = f", and {len(rejected) - 1} more" if len(rejected) > 1 else ""
    return f"{begun}; not moved: {rejected[0]}{more}"


def _targets(plan: ExplainedDrain) -> list[str]:
    targets = sorted(Counter(move.target for move in plan.moves).items(), key=lambda each: (-each[1], each[0]))
    named = ", ".join(f"{count} to {seed}" for seed, count in targets[:MOST_NAMED])
    rest = f" and {len(targets) - MOST_NAMED} more seeds" if len(targets) > MOST_NAMED else ""
    return [f"as the scheduler would place them now: {named}{rest}"] if named else []


def _stays(plan: ExplainedDrain) -> list[str]:
    leaving = sum(stay.waits for stay in plan.stays)
    stuck = [stay for stay in plan.stays if not stay.waits]
    found = [f"{stay.namespace}/{stay.name} stays: {_short(stay.reason)}" for stay in stuck[:MOST_NAMED]]
    if len(stuck) > MOST_NAMED:
        found.append(f"{counted(len(stuck) - MOST_NAMED)} more {_verb(len(stuck) - MOST_NAMED, 'stays', 'stay')}")
    if leaving:
        found.append(f"{counted(leaving)} {_verb(leaving, 'has', 'have')} an operation under way, and cannot move yet")
    if plan.not_planned:
        found.append(f"{counted(plan.not_planned)} more: drain it again once these have moved")
    return found


def _why_none(plan: ExplainedDrain) -> str:
    return f"none of its shoots can move now: {'; '.join(_stays(plan))}" if plan.shoots else "it has no shoots"


def _short(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}…"


def _verb(number: int, one: Literal["moves", "is", "has", "shoot", "stays"], many: str) -> str:
    return one if number == 1 else many
