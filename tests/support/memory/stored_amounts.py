"""What namespaces hold, in memory: what functions/stored_amounts.lua counts, made anew from the objects each time."""

from collections.abc import Mapping

import msgspec

from gardenbus.common.adapters.redis.compression import compress
from gardenbus.common.api.budgets import over_stored_budget
from gardenbus.common.api.changes import ObjectChange
from gardenbus.common.api.document import Parts, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import StoredAmount, WritePrecondition
from tests.support.memory.state import MemoryState, ObjectRow

UPDATES_PART = 1.1


def bytes_of(stored: StoredObject, parts: Parts) -> int:
    """Bytes of what requests write of an object, as it is stored."""
    packed = sum(len(compress(text)) for text in (parts.spec, stored.last_applied))
    plain = sum(len(text) for text in (parts.meta, parts.labels, parts.rest, stored.owner_setters))
    return packed + plain + sum(len(each.encode()) + 1 for each in parts.finalizers if each != "gardener")


def amount_in(state: MemoryState, namespace: str) -> StoredAmount:
    """What a namespace holds."""
    rows = [row.stored for key, row in state.rows.items() if key.namespace == namespace]
    return StoredAmount(len(rows), sum(bytes_of(row, row.parts) for row in rows))


def check_stored(
    state: MemoryState,
    guard: WritePrecondition,
    row: ObjectRow | None,
    change: ObjectChange | None,
    private: Mapping[str, bytes],
) -> None:
    """Raise StoredOverBudget for a write with which a namespace would hold more than it may."""
    if row is not None:
        base, before = row.stored, bytes_of(row.stored, row.stored.parts)
    elif change is not None:
        base, before = _nothing(change.parts), 0
    else:
        return
    after = bytes_of(msgspec.structs.replace(base, **private), base.parts if change is None else change.parts)
    if row and after <= before:
        return
    held, most = amount_in(state, guard.name), guard.limits.most
    if row is None and held.objects >= most["storedObjects"]:
        raise over_stored_budget(guard.name, "storedObjects", held.objects, most["storedObjects"])
    if held.bytes + after - before > most["storedBytes"] * (UPDATES_PART if row else 1):
        raise over_stored_budget(guard.name, "storedBytes", held.bytes, most["storedBytes"])


def _nothing(parts: Parts) -> StoredObject:
    key = ObjectKey("", "", "")
    return StoredObject(key=key, parts=parts, uid="", version=0, generation=0, created_at="")
