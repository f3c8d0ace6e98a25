"""The plug-in ClusterAffinity: who matches what a policy requires, and how much of what it prefers.

Source: KubeFleet's `plugins/clusteraffinity`.
"""

from collections.abc import Iterable, Sequence

from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.framework import SKIP, SUCCESS, Code, CycleState, Group, Score, Status, Verdict, combine
from gardenbus.fleet.masks import Mask
from gardenbus.fleet.requirements import Preference, Term

_UNMATCHED = Status(Code.UNSCHEDULABLE, "ClusterAffinity: it matches none of the required terms")


class ClusterAffinity:
    """Keeps those that match a required term, and sums up the weights of the preferred ones."""

    name = "ClusterAffinity"

    def pre_filter(self, state: CycleState) -> Status:
        """Left out where nothing is required."""
        return SUCCESS if state.policy.required or state.policy.always else SKIP

    def filter(self, state: CycleState, candidates: Mask) -> Iterable[Verdict]:
        """Objects to those that match no term."""
        matched = matching(state.policy.required, state.fleet, candidates)
        matched = matching(state.policy.always, state.fleet, matched)
        if unmatched := candidates & ~matched:
            yield Verdict(unmatched, _UNMATCHED)

    def pre_score(self, state: CycleState) -> Status:
        """Left out where nothing is preferred. A sorter's property must be a quantity wherever it is."""
        for preference in state.policy.preferred:
            if sorter := preference.term.sorter:
                column = state.fleet.properties.column(sorter.name)
                column.check(column.present)
        return SUCCESS if state.policy.preferred else SKIP

    def score(self, state: CycleState, candidates: Mask) -> Sequence[Group]:
        """The sum of what each preference is worth."""
        groups = [Group(candidates, Score())]
        for preference in state.policy.preferred:
            if preference.weight:
                groups = combine(groups, _worth(preference, state.fleet, candidates))
        return groups


def matching(terms: Sequence[Term], fleet: Fleet, among: Mask) -> Mask:
    """Those of some clusters that match one of the terms; all of them where there are no terms.

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


def _matching_term(term: Term, fleet: Fleet, among: Mask) -> Mask:
    term.check()
    if term.selector is not None:
        among &= fleet.labels.matching(term.selector)
    for wanted in term.properties:
        if not among:
            break
        among = fleet.properties.meeting(wanted.name, wanted.operator, wanted.values, among)
    return among


def _worth(preference: Preference, fleet: Fleet, among: Mask) -> list[Group]:
    term = preference.term
    term.check()
    if term.selector is not None:
        among &= fleet.labels.matching(term.selector)
    if term.sorter is None:
        return [Group(among, Score(affinity=preference.weight))] if among else []
    if not among:
        return []
    shares = fleet.properties.shares(term.sorter.name, term.sorter.sort_order, preference.weight)
    return [Group(hit, Score(affinity=share)) for clusters, share in shares if (hit := clusters & among)]
