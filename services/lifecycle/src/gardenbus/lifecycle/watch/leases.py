"""Watches gardenlet Leases and renews the probe Lease.

Each seed's heartbeats are in `records`, the probe's state in `probe`. Both are read by the reconciler of Seeds; nothing
is assessed here: a Lease that runs out is noticed by this process' own clock. A reconnect, a resync and a message
without a Lease only trigger an assessment (`on_change`), which reads the Lease again before anything is written.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
import structlog

from gardenbus.common.api.configuration.controller_manager import LifecycleConfiguration
from gardenbus.common.api.keys import LEASE_NAMESPACE, PROBE_LEASE, Subjects
from gardenbus.common.controller.reconcile_ids import bound_reconcile_id
from gardenbus.common.controller.unreadable import skip_unreadable
from gardenbus.common.controller.wait import forever, keep_following
from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import Bus, FollowEvent, FollowRestarted, Message, ReplayDone, StreamMessage
from gardenbus.common.ports.clock import Clock
from gardenbus.lifecycle import metrics
from gardenbus.lifecycle.domain.freshness import (
    NEVER,
    LeaseRecord,
    LeaseUnreadable,
    NotNewer,
    Renewed,
    RenewedAhead,
    accept_heartbeat,
    read_lease,
)
from gardenbus.lifecycle.domain.outage import ProbeState, probe_adopted, probe_received

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

PROBES_PER_PERIOD = 20


class LeaseWarning(msgspec.Struct, frozen=True):
    """A problem with a seed's Lease, to become a Warning Event on the Seed."""

    seed: str
    reason: str
    message: str


class LeaseWatcher:
    """Cache of all Leases. `on_change` is called when the seeds should be assessed before their time."""

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        clock: Clock,
        configuration: LifecycleConfiguration,
        *,
        holder: str,
        on_change: Callable[[], None],
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._clock = clock
        self._period = configuration.monitor_period
        self._period_seconds = configuration.monitor_period.total_seconds()
        self._holder = holder
        self._on_change = on_change
        self._stream = subjects.stream("LEASES")
        self._subject_start = subjects.lease("")
        self._ahead_of_server = 0.0
        self._replaying = True
        self._is_probe_failing = False
        self._unreadable: set[str] = set()
        self.records: dict[str, LeaseRecord] = {}
        self.probe = ProbeState()
        self.warnings: list[LeaseWarning] = []
        self.caught_up = asyncio.Event()

    async def follow(self) -> None:
        """Consume Leases forever; starts over, after a pause, when the bus is away."""
        await keep_following("leases", self._follow_once, sleep=self._clock.sleep, interrupted=self.on_disconnect)

    async def renew_probe(self) -> None:
        """Renew the probe Lease forever; its return through `follow` proves the bus healthy.

        Begins after the replay: until then, a probe found there must be a predecessor's.
        """
        await self.caught_up.wait()
        period_seconds = self._period_seconds / PROBES_PER_PERIOD
        await forever(self._publish_probe, period_seconds=period_seconds, sleep=self._clock.sleep)

    async def _publish_probe(self) -> None:
        try:
            await self._bus.publish(self._probe_lease())
        except Transient as error:
            if not self._is_probe_failing:
                log.warning("probe.failed", reason=error.message)
            self._is_probe_failing = True
        else:
            self._is_probe_failing = False

    async def resync(self, seeds: frozenset[str]) -> None:
        """Compare the cache with the stream: read Leases that were missed, drop those of seeds that are gone.

        `seeds` are the names of the store's Seeds. Raises Unavailable when the bus is away.
        """
        await self._set_clocks()
        live = await self._bus.subjects(self._stream, self._subjects.lease(">"))
        for subject in live:
            seed = subject.removeprefix(self._subject_start)
            if seed in seeds and seed not in self.records:
                await self.refresh(seed)
        for seed in [seed for seed in self.records if seed not in seeds and self._subjects.lease(seed) not in live]:
            del self.records[seed]
        self._unreadable &= seeds

    async def refresh(self, seed: str) -> None:
        """Read the seed's Lease from the stream itself. Raises Unavailable when the bus is away."""
        message = await self._bus.last(self._stream, self._subjects.lease(seed))
        if message is not None and message.marker is None and message.body:
            self._accept(seed, message, self._local(message.at))

    def on_disconnect(self) -> None:
        """Forget the probe after a disconnect: silence counts from the next probe on."""
        self.probe = ProbeState()

    async def _follow_once(self) -> None:
        self._replaying = True
        await self._set_clocks()
        filters = [self._subjects.lease("*")]
        async with self._bus.follow(self._stream, filters, last_per_subject=True) as follower:
            async for event in follower:
                with bound_reconcile_id():
                    self._on_event(event)
                if isinstance(event, FollowRestarted):
                    await self._set_clocks()

    def _on_event(self, event: FollowEvent) -> None:
        if isinstance(event, StreamMessage):
            with skip_unreadable(event):
                self._on_message(event)
        elif isinstance(event, ReplayDone):
            self._replaying = False
            self.caught_up.set()
            self._on_change()
        else:
            log.info("leases.restarted", reason=event.reason)
            self._replaying = True
            self.on_disconnect()

    def _on_message(self, message: StreamMessage) -> None:
        seed = message.subject.removeprefix(self._subject_start)
        if message.marker is not None or not message.body:
            self._on_change()
            return
        arrived_at = self._local(message.at) if self._replaying else self._clock.monotonic()
        if seed == PROBE_LEASE:
            self._on_probe(message, arrived_at)
        else:
            self._accept(seed, message, arrived_at)

    def _accept(self, seed: str, message: StreamMessage, arrived_at: float) -> None:
        try:
            times = read_lease(message.body)
        except LeaseUnreadable as error:
            metrics.LEASE_UNREADABLE.inc()
            self._warn_once_of_unreadable(seed, str(error))
            return
        record = self.records.get(seed) or LeaseRecord()
        heartbeat = accept_heartbeat(
            record, times.renewed, server_time=message.at, arrived_at=arrived_at, tolerance=self._period
        )
        if isinstance(heartbeat, NotNewer):
            metrics.LEASE_REPEATED.inc()
            return
        self.records[seed] = heartbeat.record
        if isinstance(heartbeat, Renewed):
            metrics.LEASE_RENEWED.inc()
            self._unreadable.discard(seed)
            return
        metrics.LEASE_AHEAD.inc()
        if heartbeat.is_first:
            self._warn_of_clock(seed, heartbeat)

    def _on_probe(self, message: StreamMessage, arrived_at: float) -> None:
        if not self._replaying:
            healthy_before = self.probe.healthy_since
            self.probe = probe_received(self.probe, arrived_at, self._period_seconds)
            if self.probe.healthy_since != healthy_before:
                log.info("probe.recovered", grace_s=self._period_seconds)
        elif self.probe.last_received_at == NEVER:
            self._adopt_probe(message, arrived_at)

    def _adopt_probe(self, message: StreamMessage, arrived_at: float) -> None:
        if self.caught_up.is_set():
            return
        try:
            times = read_lease(message.body)
        except LeaseUnreadable:
            return
        self.probe = probe_adopted(
            arrived_at=arrived_at,
            healthy_since=arrived_at if times.acquired is None else self._local(times.acquired),
            now=self._clock.monotonic(),
            monitor_period=self._period_seconds,
        )

    def _probe_lease(self) -> Message:
        now = self._clock.monotonic()
        healthy_since = now if self.probe.healthy_since == NEVER else self.probe.healthy_since
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": PROBE_LEASE, "namespace": LEASE_NAMESPACE},
            "spec": {
                "holderIdentity": self._holder,
                "leaseDurationSeconds": max(1, round(self._period_seconds)),
                "acquireTime": self._server_time(healthy_since),
                "renewTime": self._server_time(now),
            },
        }
        return Message(subject=self._subjects.lease(PROBE_LEASE), body=msgspec.json.encode(lease))

    async def _set_clocks(self) -> None:
        """Measure the offset of this process' monotonic clock from the server's clock (to half a round trip)."""
        sent_at = self._clock.monotonic()
        server_now = await self._bus.server_now(self._stream)
        self._ahead_of_server = (sent_at + self._clock.monotonic()) / 2 - server_now.timestamp()

    def _local(self, instant: datetime) -> float:
        """The server's time as a reading of the monotonic clock, at most now."""
        return min(instant.timestamp() + self._ahead_of_server, self._clock.monotonic())

    def _server_time(self, at: float) -> datetime:
        return datetime.fromtimestamp(at - self._ahead_of_server, tz=self._clock.now().tzinfo)

    def _warn_once_of_unreadable(self, seed: str, why: str) -> None:
        if seed not in self._unreadable:
            self._unreadable.add(seed)
            self.warnings.append(LeaseWarning(seed, "LeaseUnreadable", f"The Lease renews nothing: {why}"))

    def _warn_of_clock(self, seed: str, heartbeat: RenewedAhead) -> None:
        ahead_by = timedelta(seconds=round(heartbeat.ahead_by.total_seconds()))
        message = f"spec.renewTime of the Lease is {ahead_by} ahead of the bus: the gardenlet's clock is wrong."
        self.warnings.append(LeaseWarning(seed, "LeaseFromTheFuture", message))
