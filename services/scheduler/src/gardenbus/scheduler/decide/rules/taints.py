"""The shoot must tolerate every taint of the seed."""

from gardenbus.common.resources.seeds import Taint

Tolerations = tuple[tuple[str, str | None], ...]


def problem(tolerations: Tolerations, taints: tuple[Taint, ...]) -> str:
    """Why the taints are not tolerated; "" when they are. Source: Gardener's `TaintsAreTolerated`.

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
    return f"shoot does not tolerate the seed's taints ({named})"
