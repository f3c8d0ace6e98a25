"""A row of the table of filters: one filter with all that decisions, explanations and documentation need of it."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from gardenbus.common.api.bitsets import Bitset
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex, SeedPart

ClusterEvent = Literal["seed", "cloudprofile", "namespacedcloudprofile", "configmap", "project", "usage"]
"""The kind of an object whose change may let a shoot pass; `usage`: a shoot left a seed."""

Narrow = Callable[[FilterContext, SeedIndex, Bitset], Bitset]
Reason = Callable[[FilterContext, SeedCandidate], str]
Suggestion = Callable[[FilterContext, str, Sequence[SeedCandidate]], str]
NoneLeft = Callable[[FilterContext, int], str]

OF_PROFILE: tuple[ClusterEvent, ...] = ("seed", "cloudprofile", "namespacedcloudprofile")


def _no_sentence(_context: FilterContext, _seeds: int) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter. `name` is the rule of rejections, metrics and explanations.

    `removes`: "seeds that …", for documentation. `unblocked_by`: cluster events after which a shoot that it kept back
    may pass. `reason`: why a seed does not pass, "" when it does. `narrow`: the seeds of a set that pass; None when
    that differs between the shoots of a class, or is found by ranking. `none_left`: the sentence for people when none
    of so many seeds pass. `suggestion`: a change that would let the named seeds, of which these are the candidates,
    pass; None when there is none to recommend.
    """

    name: str
    removes: str
    unblocked_by: tuple[ClusterEvent, ...]
    reason: Reason
    narrow: Narrow | None = None
    suggestion: Suggestion | None = None
    none_left: NoneLeft = _no_sentence
    state: Callable[[str], str] | None = None
    """Word for a reason, where the sentence of `none_left` goes on with the seeds by these words."""


def indexed(
    name: str, reason: Reason, reads: Callable[[FilterContext], Hashable], part: SeedPart | None = None
) -> Narrow:
    """Narrows by each seed's `reason` alone; `reads` gives all that the reason depends on besides the seed.

    `part` is all that the reason depends on of the seed; None: any of it.
    """

    def narrow(context: FilterContext, index: SeedIndex, bits: Bitset) -> Bitset:
        return bits & index.matching((name, reads(context)), lambda seed: not reason(context, seed), part)

    return narrow


def lacking(seeds: int, what: str) -> str:
    """Reason for which a filter leaves no seed of those that earlier filters left: all lack something."""
    return f"none of the {seeds} remaining seeds has {what}" if seeds != 1 else f"the remaining seed lacks {what}"
