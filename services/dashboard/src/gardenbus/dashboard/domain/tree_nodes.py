"""Nodes of the tree of what belongs to what, and how well each is. Pure."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from gardenbus.common.api.conditions import TRUE
from gardenbus.common.api.fleet.placement_parts import BOUND
from gardenbus.common.api.fleet.rows import BindingRow, PlacementRow
from gardenbus.common.api.garden.rows import SeedRow, SetRow, ShootRow
from gardenbus.common.api.keys import ObjectKey

Tone = Literal["good", "busy", "warn", "wait", "bad", "idle", "hollow"]

TROUBLED = ("bad", "warn", "wait")
"""Tones of what is not well."""

_SHOOTS: dict[str, tuple[Tone, str]] = {
    "succeeded": ("good", "succeeded"),
    "processing": ("busy", "in progress"),
    "pending": ("wait", "waits for a seed"),
    "error": ("bad", "error, is tried again"),
    "failed": ("bad", "failed"),
    "deleting": ("idle", "being deleted"),
    "new": ("hollow", "new"),
}


class TreeNode(msgspec.Struct, frozen=True, rename="camel"):
    """One object in the tree. `troubles`: nodes below it that are not well, `below`: those directly below it.

    `children` are those that are shown, None while it is closed; fewer than `below` where there are too many.
    """

    kind: str
    namespace: str
    name: str
    tone: Tone
    words: str
    troubles: int = 0
    below: int = 0
    children: Sequence["TreeNode"] | None = None

    @property
    def key(self) -> ObjectKey:
        """The object."""
        return ObjectKey(self.kind, self.namespace, self.name)

    @property
    def is_troubled(self) -> bool:
        """True when it, or something below it, is not well."""
        return self.tone in TROUBLED or self.troubles > 0


def is_troubled_shoot(row: ShootRow) -> bool:
    """True for a shoot whose last operation has failed, or that no seed takes."""
    return row.state in ("error", "failed") or row.is_unschedulable


def shoot_state(row: ShootRow | None) -> tuple[Tone, str]:
    """Tone and words of a shoot; None: there is none."""
    if row is None:
        return "bad", "is missing"
    tone, words = _SHOOTS[row.state]
    if row.is_migrating:
        return ("busy" if tone == "good" else tone), f"moves to {row.seed}"
    return tone, f"{words} on {row.seed}" if row.seed else words


def seed_state(row: SeedRow | None, used: int) -> tuple[Tone, str]:
    """Tone and words of a seed; None: it has not registered."""
    if row is None:
        return "hollow", "has not registered yet"
    full = f"{used} shoots" if row.capacity is None else f"{used} of {row.capacity:g} places taken"
    if row.is_deleting:
        return "idle", f"being deleted, {full}"
    if row.ready != TRUE:
        return ("hollow", "not reported yet") if not row.ready else ("bad", f"{_unready(row)}, {full}")
    if not row.is_visible:
        return "warn", f"cordoned, {full}"
    return ("warn", f"backups not ready, {full}") if row.lacks_backups else ("good", full)


def _unready(row: SeedRow) -> str:
    return "its gardenlet is silent" if row.ready == "Unknown" else "not ready"


def set_state(row: SetRow) -> tuple[Tone, str]:
    """Tone and words of a ManagedSeedSet."""
    words = f"{row.ready} of {row.wanted} seeds ready"
    if row.pending:
        return "busy", f"{words}, {row.pending_replica}"
    return ("good" if row.ready >= row.wanted else "warn"), words


def placement_state(row: PlacementRow, available: int, selected: int) -> tuple[Tone, str]:
    """Tone and words of a placement, which has so many clusters."""
    words = f"available on {available} of {selected} clusters"
    if row.fulfilled != TRUE:
        return ("warn" if row.fulfilled else "hollow"), f"lacks clusters, {words}"
    return ("good" if available == selected else "busy"), words


def binding_state(row: BindingRow) -> tuple[Tone, str]:
    """Tone and words of a binding."""
    if row.is_deleting:
        return "idle", f"leaves {row.cluster}"
    if row.trouble:
        return "bad", f"on {row.cluster}: {row.trouble}"
    if row.is_available:
        return "good", f"available on {row.cluster}"
    return "busy", f"{'rolled out to' if row.state == BOUND else 'scheduled to'} {row.cluster}"
