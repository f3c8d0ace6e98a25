"""The seed's labels must meet the selectors of the profile and of the shoot."""

from collections.abc import Sequence

from gardenbus.common.resources.selectors import LabelSelector
from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.rules.filtering import Filtered, Inquiry, keep_where, none_of
from gardenbus.scheduling.seed_index import SeedIndex


def keep_selected_by_profile(inquiry: Inquiry, seeds: Sequence[SeedCandidate]) -> Filtered:
    """Keep seeds that the profile's seedSelector matches; no selector matches all."""
    return _keep_selected(_of_profile(inquiry), "cloud profile", seeds)


def keep_selected_by_shoot(inquiry: Inquiry, seeds: Sequence[SeedCandidate]) -> Filtered:
    """Keep seeds that the shoot's seedSelector (its exposure class merged in) matches; no selector matches all."""
    return _keep_selected(inquiry.demand.selector, "shoot", seeds)


def narrow_by_profile(inquiry: Inquiry, index: SeedIndex, bits: int) -> int:
    """`keep_selected_by_profile` on a set of an index."""
    return _narrow(_of_profile(inquiry), index, bits)


def narrow_by_shoot(inquiry: Inquiry, index: SeedIndex, bits: int) -> int:
    """`keep_selected_by_shoot` on a set of an index."""
    return _narrow(inquiry.demand.selector, index, bits)


def _of_profile(inquiry: Inquiry) -> LabelSelector | None:
    selector = inquiry.profile.seed_selector
    return selector.labels if selector is not None else None


def _narrow(selector: LabelSelector | None, index: SeedIndex, bits: int) -> int:
    if selector is None:
        return bits
    if selector.problems:
        return 0
    for key, value in selector.match_labels:
        bits &= index.labelled(key).get(value, 0)
    for requirement in selector.match_expressions:
        by_value = index.labelled(requirement.key)
        values = requirement.values if requirement.operator in ("In", "NotIn") else by_value
        met = 0
        for value in values:
            met |= by_value.get(value, 0)
        bits &= met if requirement.operator in ("In", "Exists") else ~met
    return bits


def _keep_selected(selector: LabelSelector | None, owner: str, seeds: Sequence[SeedCandidate]) -> Filtered:
    if selector is None:
        return Filtered(seeds, {}, "")
    if problems := selector.problems:
        path, message = problems[0]
        detail = f"the seed selector of the {owner} is invalid: {path}: {message}"
        return Filtered((), {candidate.name: detail for candidate in seeds}, detail)
    return keep_where(
        seeds,
        lambda candidate: (
            ""
            if selector.meets(candidate.seed.metadata.labels)
            else f"its labels do not match the seed selector of the {owner}"
        ),
        f"{none_of(seeds)} has the labels that the seed selector of the {owner} wants ({selector})",
    )
