"""Heartbeat of one seed: renews the Lease, or stands by to acquire it.

A round probes the seed's `/healthz`, then publishes the Lease with the last known sequence as the expected one. A
conflict means that another holder is active. A holder that cannot renew within the grace period deactivates itself
before another may acquire the Lease.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import structlog

from gardenbus.common.api.configuration.gardenlet import LeaseSettings
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import Conflict, GardenbusError
from gardenbus.common.ports.bus import Bus, Message, StreamMessage
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.port import FencingToken
from gardenbus.gardenlet.domain.lease import ObservedLease, RenewLease, StandBy, decide_lease, lease_manifest
from gardenbus.gardenlet.metrics import LEASE_ROUNDS

_log = structlog.stdlib.get_logger()

LEASES = "LEASES"
_SHORTEST_ROUND_SECONDS = 5.0
_UNREADABLE_HOLDER = "?"


class HeldLease:
    """Tenure of a Lease: the sequence of its last renewal, None while it is not held. The heartbeat alone writes it."""

    def __init__(self, clock: Clock, grace_period: timedelta) -> None:
        self._clock = clock
        self._grace_seconds = grace_period.total_seconds()
        self.sequence: int | None = None
        self.renewed_at = clock.monotonic()

    @property
    def is_active(self) -> bool:
        """True while the Lease is held and no other gardenlet can have acquired it."""
        return self.sequence is not None and self.is_recent(self.renewed_at)

    def is_recent(self, instant: float) -> bool:
        """True within the grace period after an instant."""
        return self._clock.monotonic() - instant < self._grace_seconds


class LeaseHeartbeat:
    """See the module. `probe` returns the seed's problem or None; `seed_uid` its Seed's uid or ""."""

    def __init__(  # noqa: PLR0913 - the ports of one loop
        self,
        *,
        bus: Bus,
        subjects: Subjects,
        seed_name: str,
        identity: str,
        settings: LeaseSettings,
        clock: Clock,
        lease: HeldLease,
        probe: Callable[[], Awaitable[str | None]],
        seed_uid: Callable[[], str],
        on_active: Callable[[FencingToken], Awaitable[None]],
        on_stand_by: Callable[[], Awaitable[None]],
    ) -> None:
        self._bus = bus
        self._subject = subjects.lease(seed_name)
        self._stream = subjects.stream(LEASES)
        self._seed_name = seed_name
        self._identity = identity
        self._settings = settings
        self._clock = clock
        self._probe = probe
        self._seed_uid = seed_uid
        self._on_active = on_active
        self._on_stand_by = on_stand_by
        self._lease = lease
        self._release_after: int | None = None
        self._well_at = clock.monotonic()
        self._trouble: str | None = None
        self.has_succeeded = False
        """True once a round succeeded, active or standby."""

    @property
    def is_healthy(self) -> bool:
        """True if a round succeeded within the grace period, active or standby."""
        return self._lease.is_recent(self._well_at)

    async def round(self) -> bool:
        """Renew, acquire or stand by; returns whether the Lease was renewed just now."""
        try:
            async with asyncio.timeout(max(_SHORTEST_ROUND_SECONDS, self._settings.resync_seconds)):
                problem = await self._probe()
                if problem is None:
                    await self._renew_or_acquire()
                    self._well_at = self._clock.monotonic()
                    self.has_succeeded = True
        except TimeoutError:
            problem = "no response in time"
        except GardenbusError as error:
            problem = error.message
        if problem != self._trouble:
            self._trouble = problem
            _log.info("lease.recovered", seed=self._seed_name) if problem is None else _log.warning(
                "lease.missed", seed=self._seed_name, reason=problem
            )
        if (
            problem is not None
            and self._lease.sequence is not None
            and not self._lease.is_recent(self._lease.renewed_at)
        ):
            await self._lose("not renewed in time")
        LEASE_ROUNDS.labels("missed" if problem else "standby" if self._lease.sequence is None else "active").inc()
        return problem is None and self._lease.sequence is not None

    async def release(self) -> None:
        """Release the Lease at shutdown, so that a standby need not wait; one that a round did not live to see too."""
        expected, self._release_after, self._lease.sequence = self._release_after, None, None
        if expected is None:
            return
        try:
            await self._publish_release(expected)
            _log.info("lease.released", seed=self._seed_name)
        except GardenbusError as error:
            _log.info("lease.release_failed", seed=self._seed_name, reason=error.message)

    async def _publish_release(self, expected: int) -> None:
        message = self._message(holder="")
        try:
            await self._bus.publish(message, expected_subject_sequence=expected)
        except Conflict:
            last = observed_lease(await self._bus.last(self._stream, self._subject))
            if last is None or last.holder != self._identity:
                raise
            await self._bus.publish(message, expected_subject_sequence=last.sequence)

    async def _publish(self, expected: int) -> int:
        """Publish the Lease as held; `expected` is all that is known of it until it is acknowledged."""
        self._release_after = expected
        self._release_after = await self._bus.publish(self._message(), expected_subject_sequence=expected)
        return self._release_after

    async def _renew_or_acquire(self) -> None:
        began = self._clock.monotonic()
        if self._lease.sequence is not None:
            try:
                self._lease.sequence = await self._publish(self._lease.sequence)
            except Conflict:
                pass  # lost, or an earlier publish was stored unnoticed: decided below
            else:
                self._lease.renewed_at = began
                return
        last = await self._bus.last(self._stream, self._subject)
        decision = decide_lease(
            observed_lease(last),
            identity=self._identity,
            is_held=self._lease.sequence is not None,
            now=await self._bus.server_now(self._stream),
            grace_period=self._settings.grace_period,
        )
        if isinstance(decision, StandBy):
            self._release_after = None
            if self._lease.sequence is not None:
                await self._lose(f"taken by {decision.holder}")
            return
        created = (await self._bus.position(self._stream)).created
        try:
            sequence = await self._publish(decision.expected)
        except Conflict as error:
            self._release_after = None
            if self._lease.sequence is not None:
                await self._lose(error.message)
            return
        if not isinstance(decision, RenewLease):
            if self._lease.sequence is not None:
                await self._lose("it had run out")
            await self._on_active(FencingToken(created, sequence))
            _log.info("lease.acquired", seed=self._seed_name, fencing_token=f"{created}.{sequence}")
        self._lease.sequence = sequence
        self._lease.renewed_at = began

    async def _lose(self, reason: str) -> None:
        self._lease.sequence = None
        _log.warning("lease.lost", seed=self._seed_name, reason=reason)
        await self._on_stand_by()

    def _message(self, *, holder: str | None = None) -> Message:
        manifest = lease_manifest(
            self._seed_name,
            holder=self._identity if holder is None else holder,
            resync_seconds=self._settings.resync_seconds,
            renewed_at=self._clock.now(),
            seed_uid=self._seed_uid(),
        )
        return Message(self._subject, encode(manifest))


def observed_lease(last: StreamMessage | None) -> ObservedLease | None:
    """The Lease in the last message of its subject; None without one."""
    if last is None:
        return None
    if last.marker is not None:
        return ObservedLease(last.sequence, "", last.at)
    try:
        manifest: Document = decode_json(last.body, dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return ObservedLease(last.sequence, _UNREADABLE_HOLDER, last.at)
    holder = section(manifest, "spec").get("holderIdentity")
    return ObservedLease(last.sequence, holder if isinstance(holder, str) else _UNREADABLE_HOLDER, last.at)
