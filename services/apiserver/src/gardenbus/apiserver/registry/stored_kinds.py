"""The kinds that objects are stored of, also unregistered ones."""

from gardenbus.common.ports.store import Store


async def stored_kinds(store: Store) -> tuple[str, ...]:
    """Their singulars. Raises Unavailable."""
    counts = await store.census()
    return tuple(name.removeprefix("objects.") for name in counts if name.startswith("objects."))
