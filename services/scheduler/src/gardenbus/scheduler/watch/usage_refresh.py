"""Keeps the cached usage that of the store's present history."""

from gardenbus.common.ports.store import Store, Usage
from gardenbus.scheduling.cache import SchedulingCache


async def record_usage(store: Store, cache: SchedulingCache, usage: Usage) -> None:
    """Apply usage that came with a reply; read all of it when the store was opened anew since. Raises Unavailable."""
    if usage.version > cache.usage_version and not usage.follows(cache.usage_version):
        await cache.refresh_usage(store)
    else:
        cache.record_usage(usage)
