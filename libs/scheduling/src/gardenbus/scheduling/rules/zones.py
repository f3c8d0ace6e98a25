"""Zones: enough of them for a zonal control plane, and the right ones for the others."""

from collections.abc import Sequence

from gardenbus.common.resources.fitting import ZONES_FOR_HIGH_AVAILABILITY, zonal_problem
from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.rules.filtering import Filtered, Inquiry, keep_where, none_of
from gardenbus.scheduling.seed_index import SeedIndex

ENFORCE = "Enforce"
PREFER = "Prefer"


def keep_zonal(inquiry: Inquiry, seeds: Sequence[SeedCandidate]) -> Filtered:
    """Keep seeds with at least three zones when the control plane must survive the loss of one."""
    if not inquiry.demand.is_zonal:
        return Filtered(seeds, {}, "")
    return keep_where(
        seeds,
        lambda candidate: zonal_problem(candidate.seed.spec.provider.zones),
        f"{none_of(seeds)} has {ZONES_FOR_HIGH_AVAILABILITY} zones, as failure tolerance 'zone' needs",
    )


def keep_zones(inquiry: Inquiry, seeds: Sequence[SeedCandidate]) -> Filtered:
    """Keep seeds with the zones asked for: those of the control plane strictly, those of the workers as the seed says.

    A seed whose zoneSelection is Enforce needs a zone in common with the workers. One whose is Prefer needs it too,
    unless no seed at all would be left.
    """
    demand = inquiry.demand
    if demand.is_zonal:
        return Filtered(seeds, {}, "")
    if demand.control_plane_zones:
        wanted = frozenset(demand.control_plane_zones)
        return keep_where(
            seeds,
            lambda candidate: (
                "" if wanted <= candidate.zones else f"it lacks zones of {_listed(demand.control_plane_zones)}"
            ),
            f"{none_of(seeds)} has the control plane's zones {_listed(demand.control_plane_zones)}",
        )
    if not demand.worker_zones:
        return Filtered(seeds, {}, "")
    return _keep_hinted(demand.worker_zones, seeds)


def narrow_zones(inquiry: Inquiry, index: SeedIndex, bits: int) -> int:
    """`keep_zones` on a set of an index."""
    demand = inquiry.demand
    if demand.is_zonal:
        return bits
    if demand.control_plane_zones:
        wanted = frozenset(demand.control_plane_zones)
        return bits & index.those(("zones", wanted), lambda seed: wanted <= seed.zones)
    hints = demand.worker_zones
    if not hints:
        return bits
    for mode in (ENFORCE, PREFER):
        misses = Misses(mode, hints)
        met = bits & index.those(("zones", mode, hints), lambda seed, misses=misses: not misses(seed))
        if mode == ENFORCE or met:
            bits = met
    return bits


def _keep_hinted(hints: tuple[str, ...], seeds: Sequence[SeedCandidate]) -> Filtered:
    def misses(mode: str) -> "Misses":
        return Misses(mode, hints)

    enforced = keep_where(
        seeds,
        misses(ENFORCE),
        f"{none_of(seeds)} has one of the workers' zones, as they enforce, {_listed(hints)}",
    )
    preferred = keep_where(enforced.kept, misses(PREFER), "")
    if not preferred.kept:
        return enforced
    return Filtered(preferred.kept, enforced.rejected | preferred.rejected, enforced.sentence)


class Misses:
    """Whether a seed of one mode has no zone in common with the workers."""

    def __init__(self, mode: str, hints: tuple[str, ...]) -> None:
        self.mode = mode
        self.hints = hints

    def __call__(self, candidate: SeedCandidate) -> str:
        """The problem in words, or ""."""
        mode = candidate.seed.spec.settings.zone_selection.mode
        if mode != self.mode or not candidate.zones.isdisjoint(self.hints):
            return ""
        return f"its zone selection is {mode} and it has none of the workers' zones {_listed(self.hints)}"


def _listed(zones: Sequence[str]) -> str:
    return ", ".join(zones)
