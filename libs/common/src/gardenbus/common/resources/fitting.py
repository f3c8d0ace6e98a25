"""Whether one seed and one shoot go together, rule by rule: asked by the scheduler and by whoever binds by name.

Each answers why they do not, as a part of a sentence, or "". Networks have a module of their own (shoot_networks.py).
"""

from collections.abc import Sequence

from gardenbus.common.resources.seeds import AccessRestriction, Taint

ZONES_FOR_HIGH_AVAILABILITY = 3
"""Zones that a seed needs for a control plane that survives the loss of one. Source: Gardener's scheduler."""

ANY_PROVIDER = "*"
"""The provider type in a profile's seedSelector that stands for all."""

Tolerations = tuple[tuple[str, str | None], ...]
"""Key and value of each toleration, as written."""


def taint_problem(tolerations: Tolerations, taints: Sequence[Taint]) -> str:
    """Why the seed's taints are not tolerated. Source: Gardener's `TaintsAreTolerated`.

    More taints than tolerations are never tolerated. Of tolerations with one key the last counts; one without value
    stands for the empty value. A taint without value is content with its key.
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
    """Why the seed does not do for a shoot with these access restrictions; options do not count.

    The seed's list must not be the shorter one either. Source: Gardener's `AccessRestrictionsAreSupported`.
    """
    names = [restriction.name for restriction in supported]
    missing = [name for name in wanted if name not in names]
    if missing or len(wanted) > len(names):
        return f"it does not support the access restrictions {', '.join(missing or wanted)}"
    return ""


def zonal_problem(zones: Sequence[str]) -> str:
    """Why a seed with these zones cannot host a control plane that must survive the loss of one."""
    if len(zones) >= ZONES_FOR_HIGH_AVAILABILITY:
        return ""
    return f"it has {len(zones)} zones, and failure tolerance of type zone needs {ZONES_FOR_HIGH_AVAILABILITY}"
