"""What filters share: what they may ask, and what they answer."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from gardenbus.common.resources.cloudprofiles import CloudProfileSpec
from gardenbus.common.resources.fitting import Tolerations
from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.request import Demand


class Inquiry(msgspec.Struct, frozen=True, eq=False):
    """A demand with the objects that it names. `tolerations` are those that count in its Project."""

    demand: Demand
    profile: CloudProfileSpec
    project: str
    tolerations: Tolerations


class Filtered(NamedTuple):
    """The seeds that stay, why the others go, and the sentence for people in case that none stays."""

    kept: Sequence[SeedCandidate]
    rejected: dict[str, str]
    sentence: str


def keep_where(seeds: Sequence[SeedCandidate], problem: Callable[[SeedCandidate], str], sentence: str) -> Filtered:
    """Keep the seeds of which `problem` says nothing ("")."""
    kept: list[SeedCandidate] = []
    rejected: dict[str, str] = {}
    for seed in seeds:
        if detail := problem(seed):
            rejected[seed.name] = detail
        else:
            kept.append(seed)
    return Filtered(kept, rejected, sentence)


def none_of(seeds: Sequence[SeedCandidate]) -> str:
    """How a sentence about seeds that all fail a rule begins; earlier rules may have turned others away."""
    return f"none of the {len(seeds)} seeds left" if len(seeds) != 1 else "not even the one seed left"
