"""The seed's provider must be the shoot's, or one that the profile allows."""

from collections.abc import Sequence

from gardenbus.common.resources.fitting import ANY_PROVIDER
from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.rules.filtering import Filtered, Inquiry, keep_where, none_of


def allowed_types(inquiry: Inquiry) -> tuple[str, ...]:
    """The provider types that the profile lists, else the shoot's own."""
    selector = inquiry.profile.seed_selector
    return (selector.provider_types if selector is not None else ()) or (inquiry.demand.provider,)


def keep_allowed_providers(inquiry: Inquiry, seeds: Sequence[SeedCandidate]) -> Filtered:
    """Keep seeds of the shoot's provider type; where the profile lists provider types, of these (`*`: all).

    The provider types in the shoot's own selector are not looked at: admission checks them once it is bound.
    """
    allowed = allowed_types(inquiry)
    if ANY_PROVIDER in allowed:
        return Filtered(seeds, {}, "")
    wanted = " or ".join(allowed)
    return keep_where(
        seeds,
        lambda candidate: (
            ""
            if candidate.seed.spec.provider.type in allowed
            else f"its provider is {candidate.seed.spec.provider.type!r}, not {wanted!r}"
        ),
        f"{none_of(seeds)} has the provider {wanted!r}",
    )
