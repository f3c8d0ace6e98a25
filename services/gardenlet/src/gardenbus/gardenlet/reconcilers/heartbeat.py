"""Keeps the Lease of one seed, or stands by to take it.

A round is: ask the seed's `/healthz`, then publish the Lease after the message that the last round knew of. Who loses
that race is not active. One that could not renew for the Lease's patience counts itself out before another takes over.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import structlog

from gardenbus.common.errors import Conflict, GardenbusError
from gardenbus.common.ports.bus import Bus, Delivered, Message
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import Document, encode, section
from gardenbus.common.resources.keys import Subjects
from gardenbus.gardenlet.backend.port import Fence
from gardenbus.gardenlet.decide.configuration import LeaseSettings
from gardenbus.gardenlet.decide.lease import LeaseSeen, Renew, StandBy, judge_lease, lease_manifest
from gardenbus.gardenlet.reconcilers.counters import LEASE_ROUNDS

_log = structlog.stdlib.get_logger()

LEASES = "LEASES"
_SHORTEST_ROUND_SECONDS = 5.0
_UNREADABLE_HOLDER = "?"


class Heartbeat:
    """See the module. `probe` answers what is wrong with the seed, or None; `seed_uid` its Seed's uid, once known."""

    def __init__(  # noqa: PLR0913 - the ports of one loop
        self,
        *,
        bus: Bus,
        subjects: Subjects,
        seed_name: str,
        identity: str,
        settings: LeaseSettings,
        clock: Clock,
        probe: Callable[[], Awaitable[str | None]],
        seed_uid: Callable[[], str],
        on_active: Callable[[Fence], Awaitable[None]],
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
        self._held: int | None = None
        self._renewed_at = clock.monotonic()
        self._well_at = clock.monotonic()
        self._trouble: str | None = None

    @property
    def is_active(self) -> bool:
        """Whether this gardenlet holds the Lease, and no other can have taken it since."""
        return self._held is not None and self._is_recent(self._renewed_at)

    @property
    def is_healthy(self) -> bool:
        """Whether a round succeeded within the patience (as the active one or as a standby)."""
        return self._is_recent(self._well_at)

    async def round(self) -> bool:
        """Renew, take or stand by; answers whether this gardenlet is active and renewed just now."""
        try:
            async with asyncio.timeout(max(_SHORTEST_ROUND_SECONDS, self._settings.resync_seconds)):
                problem = await self._probe()
                if problem is None:
                    await self._renew_or_take()
                    self._well_at = self._clock.monotonic()
        except TimeoutError:
            problem = "no answer in time"
        except GardenbusError as error:
            problem = error.message
        if problem != self._trouble:
            self._trouble = problem
            _log.info("lease.recovered", seed=self._seed_name) if problem is None else _log.warning(
                "lease.missed", seed=self._seed_name, reason=problem
            )
        if problem is not None and self._held is not None and not self._is_recent(self._renewed_at):
            await self._lose("not renewed in time")
        LEASE_ROUNDS.labels("missed" if problem else "standby" if self._held is None else "active").inc()
        return problem is None and self._held is not None

    async def release(self) -> None:
        """Give the Lease up at an orderly end, so that a standby need not wait."""
        if self._held is None:
            return
        held, self._held = self._held, None
        try:
            await self._bus.publish(self._message(holder=""), expected_subject_sequence=held)
            _log.info("lease.released", seed=self._seed_name)
        except GardenbusError as error:
            _log.info("lease.kept", seed=self._seed_name, reason=error.message)

    async def _renew_or_take(self) -> None:
        began = self._clock.monotonic()
        if self._held is not None:
            try:
                self._held = await self._bus.publish(self._message(), expected_subject_sequence=self._held)
            except Conflict:
                pass  # lost, or an earlier publish was stored without our learning of it: the judgement tells
            else:
                self._renewed_at = began
                return
        last = await self._bus.last(self._stream, self._subject)
        decision = judge_lease(
            lease_seen(last),
            identity=self._identity,
            is_held=self._held is not None,
            now=await self._bus.server_now(self._stream),
            patience=self._settings.patience,
        )
        if isinstance(decision, StandBy):
            if self._held is not None:
                await self._lose(f"taken by {decision.holder}")
            return
        created = (await self._bus.position(self._stream)).created
        try:
            sequence = await self._bus.publish(self._message(), expected_subject_sequence=decision.expected)
        except Conflict as error:
            if self._held is not None:
                await self._lose(error.message)
            return
        if not isinstance(decision, Renew):
            if self._held is not None:
                await self._lose("it had run out")
            await self._on_active(Fence(created, sequence))
            _log.info("lease.taken", seed=self._seed_name, fence=f"{created}.{sequence}")
        self._held = sequence
        self._renewed_at = began

    async def _lose(self, reason: str) -> None:
        self._held = None
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

    def _is_recent(self, instant: float) -> bool:
        return self._clock.monotonic() - instant < self._settings.patience.total_seconds()


def lease_seen(last: Delivered | None) -> LeaseSeen | None:
    """What the last message on a lease's subject says; None when there is none."""
    if last is None:
        return None
    if last.marker is not None:
        return LeaseSeen(last.sequence, "", last.at)
    try:
        manifest: Document = msgspec.json.decode(last.body, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return LeaseSeen(last.sequence, _UNREADABLE_HOLDER, last.at)
    holder = section(manifest, "spec").get("holderIdentity")
    return LeaseSeen(last.sequence, holder if isinstance(holder, str) else _UNREADABLE_HOLDER, last.at)
