"""Deletion of bindings, where their state allows it."""

from collections.abc import Sequence

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.fleet.placement_parts import ResourceBinding
from gardenbus.common.controller.writes import delete
from gardenbus.common.ports.store import Store, WritePrecondition
from gardenbus.fleet.binding_states import By, check


async def delete_binding(
    store: Store, base: StoredObject, preconditions: Sequence[WritePrecondition], *, by: By, now: str
) -> None:
    """Delete a binding, if its state allows it. Raises UnexpectedState, Conflict, Unavailable."""
    document = base.document()
    document["metadata"]["deletionTimestamp"] = now
    check(ResourceBinding.from_document(base.encoded()), ResourceBinding.from_document(document), by)
    await delete(store, base, preconditions)
