"""A seed whose reconciliations were stopped takes no new shoots."""

from collections.abc import Sequence

from gardenbus.common.resources.seeds import EMERGENCY_STOP
from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.rules.filtering import Filtered, Inquiry, keep_where, none_of


def keep_running(_inquiry: Inquiry, seeds: Sequence[SeedCandidate]) -> Filtered:
    """Drop seeds with the emergency-stop annotation; only the exact word `true` counts."""
    return keep_where(
        seeds,
        lambda candidate: (
            "its shoots' reconciliations were stopped in an emergency"
            if candidate.seed.metadata.annotations.get(EMERGENCY_STOP) == "true"
            else ""
        ),
        f"{none_of(seeds)} reconciles its shoots: they were stopped in an emergency",
    )
