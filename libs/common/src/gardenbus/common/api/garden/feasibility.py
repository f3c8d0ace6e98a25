"""Feasibility of a seed for a shoot, filter by filter, shared by the scheduler and admission of binds.

Each function returns the reason of an infeasible pair as a part of a sentence, or "". Networks are in
shoot_networks.py.
"""

from collections.abc import Sequence

from gardenbus.common.api.garden.seeds import AccessRestriction, SeedTaint

ZONES_FOR_HIGH_AVAILABILITY = 3
"""Zones that a seed needs for a control plane that survives the loss of one. Source: Gardener's scheduler."""

ANY_PROVIDER = "*"
"""Wildcard of provider types in a profile's seedSelector."""

Tolerations = tuple[tuple[str, str | None], ...]
"""Key and value of each toleration, as written."""


def taint_problem(tolerations: Tolerations, taints: Sequence[SeedTaint]) -> str:
    """Reason that taints are not tolerated. Source: Gardener's `TaintsAreTolerated`.

    More taints than tolerations are never tolerated. Of tolerations with one key the last counts; one without value
    means the empty value. A taint without value needs its key alone.
    """
    if not taints:
        return ""
    tolerated = {key: value or "" for key, value in tolerations}
    missing = [
        taint
        for taint in taints
        if taint.key not in tolerated or (taint.value is not None and tolerated[taint.key] != taint.value)
    ]
    if not missing and len(taints) <= len(tolerations):
        return ""
    named = ", ".join(f"{taint.key}={taint.value}" if taint.value else taint.key for taint in missing or taints)
    return f"the shoot does not tolerate the seed's taints ({named})"


def restriction_problem(wanted: Sequence[str], supported: Sequence[AccessRestriction]) -> str:
    """Reason that access restrictions are not supported; options do not count.

    The seed's list must not be the shorter one either. Source: Gardener's `AccessRestrictionsAreSupported`.
    """
    names = [restriction.name for restriction in supported]
    there = set(names)
    missing = [name for name in wanted if name not in there]
    if missing or len(wanted) > len(names):
        return f"it does not support the access restrictions {', '.join(missing or wanted)}"
    return ""


def zonal_problem(zones: Sequence[str]) -> str:
    """Reason that zones do not suffice for a control plane that must survive the loss of one."""
    if len(zones) >= ZONES_FOR_HIGH_AVAILABILITY:
        return ""
    return f"it has {len(zones)} zones, and failure tolerance of type zone needs {ZONES_FOR_HIGH_AVAILABILITY}"
