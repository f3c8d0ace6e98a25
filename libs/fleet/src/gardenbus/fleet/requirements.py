"""A policy parsed for scheduling: selectors compiled, empty parts left out. Parsed once per policy."""

import msgspec

from gardenbus.common.api.document import encode
from gardenbus.common.api.fleet.placements import (
    ClusterSelectorTerm,
    ClusterToleration,
    PlacementPolicy,
    PlacementType,
    PropertyRequirement,
    PropertySorter,
    RequiredTerms,
    TopologySpreadConstraint,
)
from gardenbus.common.api.selectors import LabelSelector, parse_selector
from gardenbus.common.api.short_cache import short_cache
from gardenbus.fleet.cycle_result import UnexpectedState


class Term(msgspec.Struct, frozen=True):
    """A required or preferred property of clusters."""

    selector: LabelSelector | None = None
    """Label selector."""

    problem: str = ""
    """Error of an invalid label selector."""

    properties: tuple[PropertyRequirement, ...] = ()
    """Comparisons of properties."""

    sorter: PropertySorter | None = None
    """The property that grades a preference."""

    def check(self) -> None:
        """Raise UnexpectedState when the selector is invalid."""
        if self.problem:
            raise UnexpectedState(f"the policy's label selector is invalid: {self.problem}")


class Preference(msgspec.Struct, frozen=True):
    """A preferred term with its weight."""

    weight: int
    """Its weight."""

    term: Term
    """Its term."""


class Requirements(msgspec.Struct, frozen=True):
    """A parsed policy."""

    placement_type: PlacementType
    """`PickAll`, `PickN` or `PickFixed`."""

    names: tuple[str, ...] = ()
    """`PickFixed`: the clusters, each once."""

    required: tuple[Term, ...] = ()
    """Terms of which one must match, if there are any."""

    always: tuple[Term, ...] = ()
    """Terms of which one must match, and keep matching, if there are any."""

    preferred: tuple[Preference, ...] = ()
    """Preferences for the ranking."""

    hard: tuple[TopologySpreadConstraint, ...] = ()
    """Spread constraints that exclude."""

    soft: tuple[TopologySpreadConstraint, ...] = ()
    """Spread constraints that only score."""

    tolerations: tuple[ClusterToleration, ...] = ()
    """Tolerated taints."""


def requirements_of(policy: PlacementPolicy | None) -> Requirements:
    """Parse a policy; none is PickAll."""
    return _read(encode(policy or PlacementPolicy()))


@short_cache(4096)
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
