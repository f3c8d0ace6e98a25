"""Keeps the cached usage that of the store's present history."""

from gardenbus.common.ports.store import Store, Usage
from gardenbus.scheduling.cache import SchedulingCache


async def refresh_usage(store: Store, cache: SchedulingCache) -> None:
    """Read what other replicas assigned; all of it when the store may have gone back to an older state."""
    version = cache.usage_version
    usage = await store.usage(version)
    if usage.follows(version):
        cache.record_usage(usage)
    else:
        cache.reset_usage(await store.usage(0))


async def record_usage(store: Store, cache: SchedulingCache, usage: Usage) -> None:
    """Apply usage that came with a reply; read all of it when the store was opened anew since. Raises Unavailable."""
    if usage.version > cache.usage_version and not usage.follows(cache.usage_version):
        await refresh_usage(store, cache)
    else:
        cache.record_usage(usage)
