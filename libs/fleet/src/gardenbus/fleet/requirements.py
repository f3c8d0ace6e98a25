"""A policy as cycles use it: selectors read once, empty parts left out. Read once per policy, not per cycle."""

from functools import lru_cache

import msgspec

from gardenbus.common.resources.document import encode
from gardenbus.common.resources.placements import (
    ClusterSelectorTerm,
    ClusterToleration,
    PlacementPolicy,
    PlacementType,
    PropertyRequirement,
    PropertySorter,
    RequiredTerms,
    TopologySpreadConstraint,
)
from gardenbus.common.resources.selectors import LabelSelector, parse_selector
from gardenbus.fleet.outcome import UnexpectedState


class Term(msgspec.Struct, frozen=True):
    """What a cluster must be like, or is liked for."""

    selector: LabelSelector | None = None
    """On its labels."""

    problem: str = ""
    """Why its labels cannot be selected."""

    properties: tuple[PropertyRequirement, ...] = ()
    """Comparisons with its properties."""

    sorter: PropertySorter | None = None
    """By which property a preference is graded."""

    def check(self) -> None:
        """Raise UnexpectedState when the selector is none."""
        if self.problem:
            raise UnexpectedState(f"the policy's label selector is invalid: {self.problem}")


class Preference(msgspec.Struct, frozen=True):
    """What is liked in a cluster."""

    weight: int
    """How much."""

    term: Term
    """What."""


class Requirements(msgspec.Struct, frozen=True):
    """A policy, read."""

    placement_type: PlacementType
    """`PickAll`, `PickN` or `PickFixed`."""

    names: tuple[str, ...] = ()
    """`PickFixed`: the clusters, each once."""

    required: tuple[Term, ...] = ()
    """One must hold, if there are any."""

    always: tuple[Term, ...] = ()
    """One must hold, if there are any; and go on holding."""

    preferred: tuple[Preference, ...] = ()
    """For the ranking."""

    hard: tuple[TopologySpreadConstraint, ...] = ()
    """Spread that excludes."""

    soft: tuple[TopologySpreadConstraint, ...] = ()
    """Spread that is liked."""

    tolerations: tuple[ClusterToleration, ...] = ()
    """Which taints are no obstacle."""


def requirements_of(policy: PlacementPolicy | None) -> Requirements:
    """What a policy asks for; none is PickAll."""
    return _read(encode(policy or PlacementPolicy()))


@lru_cache(maxsize=16384)
def _read(encoded: bytes) -> Requirements:
    policy = msgspec.json.decode(encoded, type=PlacementPolicy)
    affinity = policy.cluster_affinity
    spread = policy.topology_spread_constraints
    return Requirements(
        placement_type=policy.placement_type,
        names=tuple(dict.fromkeys(policy.cluster_names)),
        required=_terms(affinity.required),
        always=_terms(affinity.required_always),
        preferred=tuple(Preference(one.weight, _term(one.preference)) for one in affinity.preferred),
        hard=tuple(one for one in spread if one.is_hard),
        soft=tuple(one for one in spread if not one.is_hard),
        tolerations=policy.tolerations,
    )


def _terms(stated: RequiredTerms | None) -> tuple[Term, ...]:
    return tuple(_term(term) for term in stated.cluster_selector_terms) if stated else ()


def _term(term: ClusterSelectorTerm) -> Term:
    properties = term.property_selector.match_expressions if term.property_selector else ()
    if term.label_selector is None:
        return Term(None, "", properties, term.property_sorter)
    try:
        return Term(parse_selector(term.label_selector), "", properties, term.property_sorter)
    except ValueError as error:
        return Term(None, str(error), properties, term.property_sorter)
