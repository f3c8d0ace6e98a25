"""The seed's provider must be the shoot's, or one that the profile allows.

The provider types in the shoot's own selector do not count: admission checks them once it is bound.
"""

from collections.abc import Sequence

from gardenbus.common.api.garden.feasibility import ANY_PROVIDER
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import OF_PROFILE, Filter, indexed, lacking
from gardenbus.scheduling.seed_candidates import SeedCandidate

NAME = "provider"


def allowed_types(context: FilterContext) -> tuple[str, ...]:
    """The provider types that the profile lists (`*`: all), else the shoot's own."""
    selector = context.profile.seed_selector
    return (selector.provider_types if selector is not None else ()) or (context.constraints.provider,)


def _wanted(context: FilterContext) -> str:
    return repr(" or ".join(allowed_types(context)))


def _reason(context: FilterContext, candidate: SeedCandidate) -> str:
    allowed, kind = allowed_types(context), candidate.seed.spec.provider.type
    if kind in allowed or ANY_PROVIDER in allowed:
        return ""
    return f"its provider is {kind!r}, not {_wanted(context)}"


def _suggestion(context: FilterContext, seeds: str, rejected: Sequence[SeedCandidate]) -> str:
    types = " or ".join(sorted({candidate.seed.spec.provider.type for candidate in rejected}))
    return f"{context.profile_name} allows the provider {types} in spec.seedSelector.providerTypes: {seeds}"


PROVIDER = Filter(
    NAME,
    removes="are of a type that the profile does not allow",
    unblocked_by=OF_PROFILE,
    reason=_reason,
    narrow=indexed(NAME, _reason, allowed_types),
    none_left=lambda context, seeds: lacking(seeds, f"the provider {_wanted(context)}"),
    suggestion=_suggestion,
)
