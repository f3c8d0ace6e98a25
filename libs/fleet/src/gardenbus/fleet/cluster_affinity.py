"""The plug-in ClusterAffinity: filters by required terms and scores by preferred ones.

Source: KubeFleet's `plugins/clusteraffinity`.
"""

from collections.abc import Iterable, Sequence

from gardenbus.common.api.bitsets import Bitset
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.framework import SKIP, SUCCESS, Code, CycleState, FilterResult, Score, ScoreGroup, Status, combine
from gardenbus.fleet.requirements import Preference, Term

_UNMATCHED = Status(Code.UNSCHEDULABLE, "ClusterAffinity: it matches none of the required terms")


class ClusterAffinityPlugin:
    """Keeps clusters that match a required term, and sums up the weights of the preferred ones."""

    name = "ClusterAffinity"

    def pre_filter(self, state: CycleState) -> Status:
        """Skip the filter where nothing is required."""
        return SUCCESS if state.policy.required or state.policy.always else SKIP

    def filter(self, state: CycleState, candidates: Bitset) -> Iterable[FilterResult]:
        """Reject clusters that match no term."""
        matched = matching(state.policy.required, state.fleet, candidates)
        matched = matching(state.policy.always, state.fleet, matched)
        if unmatched := candidates & ~matched:
            yield FilterResult(unmatched, _UNMATCHED)

    def pre_score(self, state: CycleState) -> Status:
        """Skip the score where nothing is preferred; raise UnexpectedState where a sorter's property is no quantity."""
        for preference in state.policy.preferred:
            if sorter := preference.term.sorter:
                column = state.fleet.properties.column(sorter.name)
                column.check(column.present)
        return SUCCESS if state.policy.preferred else SKIP

    def score(self, state: CycleState, candidates: Bitset) -> Sequence[ScoreGroup]:
        """Add up the weights of the preferences."""
        groups = [ScoreGroup(candidates, Score())]
        for preference in state.policy.preferred:
            if preference.weight:
                groups = combine(groups, _worth(preference, state.fleet, candidates))
        return groups


def matching(terms: Sequence[Term], fleet: Fleet, among: Bitset) -> Bitset:
    """Return the clusters among `among` that match one of the terms; all of them where there are no terms.

    Raises UnexpectedState where a term cannot be evaluated for a cluster that no earlier term matches.
    """
    if not terms:
        return among
    unmatched = among
    for term in terms:
        if not unmatched:
            break
        unmatched &= ~_matching_term(term, fleet, unmatched)
    return among & ~unmatched


def _matching_term(term: Term, fleet: Fleet, among: Bitset) -> Bitset:
    term.check()
    if term.selector is not None:
        among &= fleet.labels.matching(term.selector)
    for wanted in term.properties:
        if not among:
            break
        among = fleet.properties.satisfying(wanted.name, wanted.operator, wanted.values, among)
    return among


def _worth(preference: Preference, fleet: Fleet, among: Bitset) -> list[ScoreGroup]:
    term = preference.term
    term.check()
    if term.selector is not None:
        among &= fleet.labels.matching(term.selector)
    if term.sorter is None:
        return [ScoreGroup(among, Score(affinity=preference.weight))] if among else []
    if not among:
        return []
    shares = fleet.properties.shares(term.sorter.name, term.sorter.sort_order, preference.weight)
    return [ScoreGroup(hit, Score(affinity=share)) for clusters, share in shares if (hit := clusters & among)]
