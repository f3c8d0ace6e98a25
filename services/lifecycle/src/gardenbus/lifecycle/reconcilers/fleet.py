"""Shows how the seeds are, how full they are, and how late their Leases: numbers for people."""

from collections.abc import Mapping

import structlog

from gardenbus.common.errors import Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.lifecycle.decide.fleet import CountedSeed, counted_seed, fleet, lateness
from gardenbus.lifecycle.decide.freshness import LeaseRecord
from gardenbus.lifecycle.decide.verdict import WatchedSeed
from gardenbus.lifecycle.reconcilers import counters

_log = structlog.stdlib.get_logger()


class FleetFigures:
    """`watch` keeps the seeds current from an informer's callbacks; `show` adds them up now and then.

    `records` are what is known of the Leases, `watched` the seeds that ought to have one: live views of both.
    """

    def __init__(
        self,
        store: Store,
        records: Mapping[str, LeaseRecord],
        watched: Mapping[str, WatchedSeed],
        clock: Clock,
        *,
        late_after_seconds: float,
        is_per_seed: bool,
    ) -> None:
        self._store = store
        self._records = records
        self._watched = watched
        self._clock = clock
        self._late_after_seconds = late_after_seconds
        self._is_per_seed = is_per_seed
        self._seeds: dict[str, CountedSeed] = {}
        self._usage: dict[str, int] = {}
        self._usage_version = 0

    def watch(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Take up a change of a Seed."""
        if new is None:
            self._seeds.pop(key.name, None)
            self._usage.pop(key.name, None)
        else:
            self._seeds[key.name] = counted_seed(new.document())

    async def run(self, seconds: float) -> None:
        """Show the numbers every so many seconds, for ever; without the store, usage is as it was."""
        while True:
            try:
                await self.ask_usage()
            except Transient as error:
                _log.info("usage.unreachable", reason=error.message)
            self.show()
            await self._clock.sleep(seconds)

    async def ask_usage(self) -> None:
        """Learn what changed; all of it when the store has gone back to an older state. Raises Unavailable."""
        usage = await self._store.usage(self._usage_version)
        if usage.version < self._usage_version:
            self._usage.clear()
            usage = await self._store.usage(0)
        self._usage.update(usage.seeds)
        self._usage_version = usage.version

    def show(self) -> None:
        """Show the numbers as they are known."""
        sums = fleet(self._seeds, self._usage)
        for gauge in (counters.SEEDS, counters.USED, counters.ALLOCATABLE):
            gauge.clear()
        for (state, place), count in sums.seeds.items():
            counters.SEEDS.labels(state, place.provider, place.region).set(count)
        for place, count in sums.used.items():
            counters.USED.labels(place.provider, place.region).set(count)
            counters.ALLOCATABLE.labels(place.provider, place.region).set(sums.allocatable[place])
        late = lateness(
            [self._records.get(name) for name, seed in self._watched.items() if seed.was_heard_of],
            now=self._clock.monotonic(),
            late_after_seconds=self._late_after_seconds,
        )
        counters.LEASES_LATE.set(late.late)
        counters.LEASE_OLDEST.set(late.longest_seconds)
        if self._is_per_seed:
            self._show_each()

    def _show_each(self) -> None:
        for gauge in (counters.SEED_USED, counters.SEED_ALLOCATABLE, counters.SEED_READY):
            gauge.clear()
        for name, seed in self._seeds.items():
            counters.SEED_USED.labels(name).set(self._usage.get(name, 0))
            counters.SEED_READY.labels(name).set(seed.state in ("ready", "cordoned"))
            if seed.allocatable is not None:
                counters.SEED_ALLOCATABLE.labels(name).set(seed.allocatable)
