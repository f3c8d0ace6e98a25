"""Listens to the Leases, and keeps the canary singing.

What is known of each seed's heartbeats stands in `records`, whether it may be relied on in `hearing`. Both are read by
the reconciler of Seeds; nothing is judged here. A delete marker, a reconnect and a comparison are only reasons to look
(`nudge`): what they tell is asked again before anything is written.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
import structlog

from gardenbus.common.errors import Transient
from gardenbus.common.ports.bus import Bus, Delivered, FollowEvent, FollowRestarted, Message, ReplayDone
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.keys import CANARY_LEASE, LEASE_NAMESPACE, Subjects
from gardenbus.lifecycle.decide.configuration import LifecycleConfiguration
from gardenbus.lifecycle.decide.freshness import (
    NEVER,
    LeaseRecord,
    LeaseUnreadable,
    NotNewer,
    Renewed,
    RenewedAhead,
    read_lease,
    take_heartbeat,
)
from gardenbus.lifecycle.decide.outage import Hearing, adopted, cut, heard
from gardenbus.lifecycle.reconcilers import counters

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

RETRY_SECONDS = 0.5
CANARIES_PER_PERIOD = 20


class LeaseComplaint(msgspec.Struct, frozen=True):
    """Something about a seed's Lease that people should know: becomes a Warning Event on the Seed."""

    seed: str
    reason: str
    message: str


class LeaseWatch:
    """What this process knows of all Leases. `nudge` is called when the seeds deserve a look before their time."""

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        clock: Clock,
        configuration: LifecycleConfiguration,
        *,
        holder: str,
        nudge: Callable[[], None],
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._clock = clock
        self._period = configuration.monitor_period
        self._period_seconds = configuration.monitor_period.total_seconds()
        self._holder = holder
        self._nudge = nudge
        self._stream = subjects.stream("LEASES")
        self._subject_start = subjects.lease("")
        self._ahead_of_server = 0.0
        self._replaying = True
        self._unreadable: set[str] = set()
        self.records: dict[str, LeaseRecord] = {}
        self.hearing: Hearing = cut()
        self.complaints: list[LeaseComplaint] = []
        self.caught_up = asyncio.Event()

    async def follow(self) -> None:
        """Take Leases as they come, for ever; begins anew, with a pause, when the bus is away."""
        while True:
            try:
                await self._follow_once()
            except Transient as error:
                log.warning("leases.interrupted", reason=error.message)
                self.on_cut()
                await self._clock.sleep(RETRY_SECONDS)

    async def sing(self) -> None:
        """Renew the canary's Lease, for ever. That it comes back through `follow` is what proves the bus well.

        Begins when the replay is over: before, a canary found there must be a predecessor's.
        """
        await self.caught_up.wait()
        failing = False
        while True:
            try:
                await self._bus.publish(self._canary())
            except Transient as error:
                if not failing:
                    log.warning("canary.silenced", reason=error.message)
                failing = True
            else:
                failing = False
            await self._clock.sleep(self._period_seconds / CANARIES_PER_PERIOD)

    async def compare(self, seeds: frozenset[str]) -> None:
        """Ask the stream which Leases live: take up those that were missed, forget those of seeds that are gone.

        `seeds` are the names of the store's Seeds. Raises Unavailable when the bus is away.
        """
        await self._set_clocks()
        live = await self._bus.subjects(self._stream, self._subjects.lease(">"))
        for subject in live:
            seed = subject.removeprefix(self._subject_start)
            if seed in seeds and seed not in self.records:
                await self.look_once_more(seed)
        for seed in [seed for seed in self.records if seed not in seeds and self._subjects.lease(seed) not in live]:
            del self.records[seed]
        self._unreadable &= seeds

    async def look_once_more(self, seed: str) -> None:
        """Read the seed's Lease from the stream itself. Raises Unavailable when the bus is away."""
        message = await self._bus.last(self._stream, self._subjects.lease(seed))
        if message is not None and message.marker is None and message.body:
            self._take(seed, message, self._local(message.at))

    def on_cut(self) -> None:
        """Nothing was heard for a while, for whatever reason: silence counts from the next canary on."""
        self.hearing = cut()

    async def _follow_once(self) -> None:
        self._replaying = True
        await self._set_clocks()
        filters = [self._subjects.lease("*")]
        async with self._bus.follow(self._stream, filters, last_per_subject=True) as follower:
            async for event in follower:
                self._on_event(event)
                if isinstance(event, FollowRestarted):
                    await self._set_clocks()

    def _on_event(self, event: FollowEvent) -> None:
        if isinstance(event, Delivered):
            self._on_message(event)
        elif isinstance(event, ReplayDone):
            self._replaying = False
            self.caught_up.set()
            self._nudge()
        else:
            log.info("leases.restarted", reason=event.reason)
            self._replaying = True
            self.on_cut()

    def _on_message(self, message: Delivered) -> None:
        seed = message.subject.removeprefix(self._subject_start)
        if message.marker is not None or not message.body:
            self._nudge()
            return
        arrived_at = self._local(message.at) if self._replaying else self._clock.monotonic()
        if seed == CANARY_LEASE:
            self._on_canary(message, arrived_at)
        else:
            self._take(seed, message, arrived_at)

    def _take(self, seed: str, message: Delivered, arrived_at: float) -> None:
        try:
            times = read_lease(message.body)
        except LeaseUnreadable as error:
            counters.LEASE_UNREADABLE.inc()
            self._complain_once_of_unreadable(seed, str(error))
            return
        record = self.records.get(seed) or LeaseRecord()
        heartbeat = take_heartbeat(
            record, times.renewed, stood_at=message.at, arrived_at=arrived_at, tolerance=self._period
        )
        if isinstance(heartbeat, NotNewer):
            counters.LEASE_REPEATED.inc()
            return
        self.records[seed] = heartbeat.record
        if isinstance(heartbeat, Renewed):
            counters.LEASE_RENEWED.inc()
            self._unreadable.discard(seed)
            return
        counters.LEASE_AHEAD.inc()
        if heartbeat.is_news:
            self._complain_of_clock(seed, heartbeat)

    def _on_canary(self, message: Delivered, arrived_at: float) -> None:
        if not self._replaying:
            well_before = self.hearing.well_since
            self.hearing = heard(self.hearing, arrived_at, self._period_seconds)
            if self.hearing.well_since != well_before:
                log.info("canary.heard", grace_s=self._period_seconds)
        elif self.hearing.last_heard_at == NEVER:
            self._adopt(message, arrived_at)

    def _adopt(self, message: Delivered, arrived_at: float) -> None:
        if self.caught_up.is_set():
            return
        try:
            times = read_lease(message.body)
        except LeaseUnreadable:
            return
        self.hearing = adopted(
            arrived_at=arrived_at,
            well_since=arrived_at if times.acquired is None else self._local(times.acquired),
            now=self._clock.monotonic(),
            monitor_period=self._period_seconds,
        )

    def _canary(self) -> Message:
        now = self._clock.monotonic()
        well_since = now if self.hearing.well_since == NEVER else self.hearing.well_since
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": CANARY_LEASE, "namespace": LEASE_NAMESPACE},
            "spec": {
                "holderIdentity": self._holder,
                "leaseDurationSeconds": max(1, round(self._period_seconds)),
                "acquireTime": self._server_time(well_since),
                "renewTime": self._server_time(now),
            },
        }
        return Message(subject=self._subjects.lease(CANARY_LEASE), body=msgspec.json.encode(lease))

    async def _set_clocks(self) -> None:
        """Measure how far this process' monotonic clock is from the server's clock (to half a round trip)."""
        asked_at = self._clock.monotonic()
        server_now = await self._bus.server_now(self._stream)
        self._ahead_of_server = (asked_at + self._clock.monotonic()) / 2 - server_now.timestamp()

    def _local(self, instant: datetime) -> float:
        """The server's time as a reading of the monotonic clock; nothing has arrived in the future."""
        return min(instant.timestamp() + self._ahead_of_server, self._clock.monotonic())

    def _server_time(self, at: float) -> datetime:
        return datetime.fromtimestamp(at - self._ahead_of_server, tz=self._clock.now().tzinfo)

    def _complain_once_of_unreadable(self, seed: str, why: str) -> None:
        if seed not in self._unreadable:
            self._unreadable.add(seed)
            self.complaints.append(LeaseComplaint(seed, "LeaseUnreadable", f"The Lease renews nothing: {why}"))

    def _complain_of_clock(self, seed: str, heartbeat: RenewedAhead) -> None:
        ahead_by = timedelta(seconds=round(heartbeat.ahead_by.total_seconds()))
        message = f"spec.renewTime of the Lease is {ahead_by} ahead of the bus: the gardenlet's clock is wrong."
        self.complaints.append(LeaseComplaint(seed, "LeaseFromTheFuture", message))
