"""Zones: enough of them for a zonal control plane, and the right ones for the others.

The zones of the control plane bind strictly. Those of the workers bind as the seed says: one whose zoneSelection is
Enforce needs a zone in common with the workers; one whose is Prefer needs it too, unless no seed at all would be left.
"""

from collections.abc import Sequence

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.garden.feasibility import ZONES_FOR_HIGH_AVAILABILITY, zonal_problem
from gardenbus.scheduling.filters.context import FilterContext
from gardenbus.scheduling.filters.row import Filter, indexed, lacking
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.seed_index import SeedIndex, SeedPart

ENFORCE = "Enforce"
PREFER = "Prefer"
_ZONAL = "zonal-control-plane"
_READ = SeedPart("zones", lambda seed: (seed.seed.spec.settings.zone_selection.mode, seed.seed.spec.provider.zones))


def _zonal_reason(context: FilterContext, candidate: SeedCandidate) -> str:
    return zonal_problem(candidate.seed.spec.provider.zones) if context.constraints.is_zonal else ""


def _reason(context: FilterContext, candidate: SeedCandidate) -> str:
    constraints = context.constraints
    if constraints.control_plane_zones:
        return f"it lacks zones of {_listed(constraints.control_plane_zones)}"
    mode, hints = candidate.seed.spec.settings.zone_selection.mode, constraints.worker_zones
    return f"its zone selection is {mode} and it has none of the workers' zones {_listed(hints)}"


def _narrow(context: FilterContext, index: SeedIndex, bits: Bitset) -> Bitset:
    constraints = context.constraints
    if constraints.is_zonal:
        return bits
    if constraints.control_plane_zones:
        wanted = frozenset(constraints.control_plane_zones)
        return bits & index.matching(("zones", wanted), lambda seed: wanted <= seed.zones, _READ)
    hints = constraints.worker_zones
    if not hints:
        return bits
    enforced = bits & _meeting(ENFORCE, hints, index)
    return enforced & _meeting(PREFER, hints, index) or enforced


def _meeting(mode: str, hints: tuple[str, ...], index: SeedIndex) -> Bitset:
    """The seeds of another mode, and those with a zone in common with the workers."""
    return index.matching(
        ("zones", mode, hints),
        lambda seed: seed.seed.spec.settings.zone_selection.mode != mode or not seed.zones.isdisjoint(hints),
        _READ,
    )


def _none_left(context: FilterContext, seeds: int) -> str:
    if zones := context.constraints.control_plane_zones:
        return lacking(seeds, f"the zones {_listed(zones)}, required by the control plane")
    hints = context.constraints.worker_zones
    return lacking(seeds, f"any of the zones {_listed(hints)}, required by the workers")


def _listed(zones: Sequence[str]) -> str:
    return ", ".join(zones)


ZONAL_CONTROL_PLANE = Filter(
    _ZONAL,
    removes="have fewer than three zones, where the control plane must survive the loss of one",
    unblocked_by=("seed",),
    reason=_zonal_reason,
    narrow=indexed(_ZONAL, _zonal_reason, lambda context: context.constraints.is_zonal, _READ),
    none_left=lambda _, seeds: lacking(
        seeds, f"{ZONES_FOR_HIGH_AVAILABILITY} zones, required by failure tolerance 'zone'"
    ),
    suggestion=lambda context, seeds, rejected: f"{seeds} gets more zones ({_zonal_reason(context, rejected[0])})",
)
ZONES = Filter(
    "zones",
    removes="lack the zones of the control plane, or share none with the workers where that binds",
    unblocked_by=("seed",),
    reason=_reason,
    narrow=_narrow,
    none_left=_none_left,
    suggestion=lambda context, seeds, rejected: f"{seeds} gets the required zones ({_reason(context, rejected[0])})",
)
