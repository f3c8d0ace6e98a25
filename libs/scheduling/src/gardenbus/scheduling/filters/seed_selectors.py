"""The seed's labels must meet the selectors of the profile and of the shoot; no selector matches all."""

from collections.abc import Callable

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.selectors import LabelSelector
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import OF_PROFILE, Filter, Narrow, Reason, lacking
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex

_SelectorOf = Callable[[FilterContext], LabelSelector | None]


def _of_profile(context: FilterContext) -> LabelSelector | None:
    selector = context.profile.seed_selector
    return selector.labels if selector is not None else None


def _of_shoot(context: FilterContext) -> LabelSelector | None:
    """The shoot's own selector, with its exposure class's merged in."""
    return context.constraints.selector


def _narrow(selector_of: _SelectorOf) -> Narrow:
    def narrow(context: FilterContext, index: SeedIndex, bits: Bitset) -> Bitset:
        selector = selector_of(context)
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

    return narrow


def _problem(selector: LabelSelector, owner: str) -> str:
    path, message = selector.problems[0]
    return f"the seed selector of the {owner} is invalid: {path}: {message}"


def _reason(selector_of: _SelectorOf, owner: str) -> Reason:
    def reason(context: FilterContext, candidate: SeedCandidate) -> str:
        selector = selector_of(context)
        if selector is None:
            return ""
        if selector.problems:
            return _problem(selector, owner)
        if selector.meets(candidate.seed.metadata.labels):
            return ""
        return f"its labels do not match the seed selector of the {owner}"

    return reason


def _none_left(selector_of: _SelectorOf, owner: str) -> Callable[[FilterContext, int], str]:
    def none_left(context: FilterContext, seeds: int) -> str:
        selector = selector_of(context)
        if selector is not None and selector.problems:
            return _problem(selector, owner)
        return lacking(seeds, f"the labels required by the seed selector of the {owner} ({selector})")

    return none_left


PROFILE_SELECTOR = Filter(
    "cloudprofile-selector",
    removes="lack the labels that the profile requires",
    unblocked_by=OF_PROFILE,
    reason=_reason(_of_profile, "cloud profile"),
    narrow=_narrow(_of_profile),
    none_left=_none_left(_of_profile, "cloud profile"),
    suggestion=lambda context, seeds, _: (
        f"{seeds} gets the labels that the seedSelector of {context.profile_name} wants, or that selector changes"
    ),
)
SHOOT_SELECTOR = Filter(
    "shoot-selector",
    removes="lack the labels that the shoot requires",
    unblocked_by=("seed",),
    reason=_reason(_of_shoot, "shoot"),
    narrow=_narrow(_of_shoot),
    none_left=_none_left(_of_shoot, "shoot"),
    suggestion=lambda context, seeds, _: (
        f"{seeds} gets the labels that the shoot's seedSelector wants ({context.constraints.selector})"
    ),
)
