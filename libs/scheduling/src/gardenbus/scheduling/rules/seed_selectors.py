"""The seed's labels must meet the selectors of the profile and of the shoot."""

from collections.abc import Sequence

from gardenbus.common.resources.selectors import LabelSelector
from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.rules.filtering import Filtered, Inquiry, keep_where, none_of


def of_profile(inquiry: Inquiry) -> LabelSelector | None:
    """The label part of the profile's seedSelector."""
    selector = inquiry.profile.seed_selector
    return selector.labels if selector is not None else None


def keep_selected_by_profile(inquiry: Inquiry, seeds: Sequence[SeedCandidate]) -> Filtered:
    """Keep seeds that the profile's seedSelector matches; no selector matches all."""
    return _keep_selected(of_profile(inquiry), "cloud profile", seeds)


def keep_selected_by_shoot(inquiry: Inquiry, seeds: Sequence[SeedCandidate]) -> Filtered:
    """Keep seeds that the shoot's seedSelector (its exposure class merged in) matches; no selector matches all."""
    return _keep_selected(inquiry.demand.selector, "shoot", seeds)


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
