"""Gauges of the seeds: their states, usage, capacity and late Leases."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.history import SeedUse
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.wait import forever
from gardenbus.common.errors import Transient
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.lifecycle import metrics
from gardenbus.lifecycle.domain.assessment import WatchedSeed
from gardenbus.lifecycle.domain.freshness import LeaseRecord
from gardenbus.lifecycle.domain.history import seed_use
from gardenbus.lifecycle.domain.seed_totals import CountedSeed, counted_seed, lateness, total_seeds

_log = structlog.stdlib.get_logger()


@dataclass(eq=False)
class SeedGauges:
    """`watch` keeps the seeds current as an informer's callback; `publish` sets the gauges.

    `records` are the Leases' records, `watched` the seeds that ought to have one: live views of both.
    """

    store: Store
    records: Mapping[str, LeaseRecord]
    watched: Mapping[str, WatchedSeed]
    clock: Clock
    _: KW_ONLY
    late_after_seconds: float
    is_per_seed: bool
    _seeds: dict[str, CountedSeed] = field(default_factory=dict[str, CountedSeed], init=False)
    _usage: dict[str, int] = field(default_factory=dict[str, int], init=False)
    _usage_version: int = field(default=0, init=False)

    def watch(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Handle a change of a Seed."""
        if new is None:
            self._seeds.pop(key.name, None)
            self._usage.pop(key.name, None)
        else:
            self._seeds[key.name] = counted_seed(new.document())

    async def run(self, seconds: float) -> None:
        """Publish periodically, forever; while the store is away, usage stays as it was."""
        await forever(self._refresh_and_publish, period_seconds=seconds, sleep=self.clock.sleep)

    async def _refresh_and_publish(self) -> None:
        try:
            await self.refresh_usage()
        except Transient as error:
            _log.info("usage.unreachable", reason=error.message)
        self.publish()

    async def refresh_usage(self) -> None:
        """Read changed usage; all of it when the store may have gone back to an older state. Raises Unavailable."""
        usage = await self.store.usage(self._usage_version)
        if not usage.follows(self._usage_version):
            self._usage.clear()
            usage = await self.store.usage(0)
        self._usage.update(usage.seeds)
        self._usage_version = usage.version

    def seed_uses(self) -> Mapping[str, SeedUse]:
        """The seeds in a point of the history, with the usage that was read last."""
        return {name: seed_use(seed, self._usage.get(name, 0)) for name, seed in self._seeds.items()}

    def publish(self) -> None:
        """Set the gauges."""
        sums = total_seeds(self._seeds, self._usage)
        for gauge in (metrics.SEEDS, metrics.USED, metrics.ALLOCATABLE):
            gauge.clear()
        for (state, place), count in sums.seeds.items():
            metrics.SEEDS.labels(state, place.provider, place.region).set(count)
        for place, count in sums.used.items():
            metrics.USED.labels(place.provider, place.region).set(count)
            metrics.ALLOCATABLE.labels(place.provider, place.region).set(sums.allocatable[place])
        late = lateness(
            [self.records.get(name) for name, seed in self.watched.items() if seed.has_reported],
            now=self.clock.monotonic(),
            late_after_seconds=self.late_after_seconds,
        )
        metrics.LEASES_LATE.set(late.late)
        metrics.LEASE_OLDEST.set(late.longest_seconds)
        if self.is_per_seed:
            self._publish_each()

    def _publish_each(self) -> None:
        for gauge in (metrics.SEED_USED, metrics.SEED_ALLOCATABLE, metrics.SEED_READY):
            gauge.clear()
        for name, seed in self._seeds.items():
            metrics.SEED_USED.labels(name).set(self._usage.get(name, 0))
            metrics.SEED_READY.labels(name).set(seed.state in ("ready", "cordoned"))
            if seed.allocatable is not None:
                metrics.SEED_ALLOCATABLE.labels(name).set(seed.allocatable)
