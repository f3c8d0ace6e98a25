"""Validity of silence: the heartbeat probe and the circuit breaker on mass expiry.

**Probe.** Lifecycle renews a Lease of its own. As long as that comes back through the same stream as the seeds'
Leases, the bus stores and delivers, and this process receives. When it is absent for longer than a quarter of the
monitor period, the silence of seeds in that time proves nothing, and every seed gets a full period after its return. A
quarter leaves a living gardenlet three quarters to come back after an interruption that nobody noticed.

**Circuit breaker.** When most seeds fall silent together, an error on our side is likelier than that they all died.
Seeds that are quiet (nothing for half a period, though not yet a whole one) count as well once a first one has fallen
silent: else those that happened to renew first would expire before the others make it visible that something is wrong.

A seed that is still silent when others come back stays held until the period is over: it may be the next to come back.

| state | silent | next | expire |
|---|---|---|---|
| closed | none, few | closed | yes |
| closed | many | open | no, warn |
| open | none | closed | yes |
| open | few, many | open | no |
| expired (open for a period) | none | closed | yes |
| expired | few, many | overridden | yes |
| overridden | many | overridden | yes |
| overridden | none, few | closed | yes |
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from gardenbus.lifecycle.domain.freshness import NEVER

MIN_SEEDS_TO_OPEN = 10
SHARE_TO_OPEN = 0.55
_PROBE_GAP_SHARE = 0.25
_QUIET_SHARE = 0.5


class ProbeState(NamedTuple):
    """Last arrival of the probe, and the start of its current run without a gap. `NEVER`: not since the connection."""

    last_received_at: float = NEVER
    healthy_since: float = NEVER


def max_probe_gap(monitor_period: float) -> float:
    """Seconds for which the probe may be absent without meaning an outage."""
    return monitor_period * _PROBE_GAP_SHARE


def quiet_time(monitor_period: float) -> float:
    """Seconds without a renewal after which a seed, though alive, counts for the circuit breaker."""
    return monitor_period * _QUIET_SHARE


def probe_received(probe: ProbeState, now: float, monitor_period: float) -> ProbeState:
    """The state after the probe arrived."""
    if is_probe_lost(probe, now, monitor_period):
        return ProbeState(now, now)
    return ProbeState(now, probe.healthy_since)


def probe_adopted(*, arrived_at: float, healthy_since: float, now: float, monitor_period: float) -> ProbeState:
    """The state of a starting process that finds a probe: the bus may have been healthy for long."""
    if now - arrived_at > max_probe_gap(monitor_period):
        return ProbeState()
    return ProbeState(arrived_at, min(healthy_since, arrived_at))


def is_probe_lost(probe: ProbeState, now: float, monitor_period: float) -> bool:
    """True if silence proves nothing at present."""
    return now - probe.last_received_at > max_probe_gap(monitor_period)


class BreakerState(Enum):
    """State of the circuit breaker; see the module's table. EXPIRED is never stored: OPEN turns into it by time."""

    CLOSED = "released"
    OPEN = "holding"
    EXPIRED = "overdue"
    OVERRIDDEN = "believing"


class SilenceLevel(Enum):
    """Number of silent seeds, as far as the circuit breaker distinguishes it."""

    NONE = "none"
    FEW = "few"
    MANY = "many"


class SilenceCounts(NamedTuple):
    """Numbers of an assessment.

    `newly_silent` seeds have not been expired yet, `quiet` ones are about to fall silent, `recently_expired` ones
    expired within the last period; `watched` is all of them and the living.
    """

    newly_silent: int
    quiet: int
    recently_expired: int
    watched: int


class CircuitBreaker(NamedTuple):
    """The breaker's state, and when it was entered."""

    state: BreakerState = BreakerState.CLOSED
    since: float = NEVER


class BreakerTransition(NamedTuple):
    """The breaker after an assessment: whether silent seeds expire, and whether it has just opened."""

    breaker: CircuitBreaker
    allows_expiry: bool
    opened_now: bool = False


_NEXT: Mapping[tuple[BreakerState, SilenceLevel], tuple[BreakerState, bool]] = {
    (BreakerState.CLOSED, SilenceLevel.NONE): (BreakerState.CLOSED, True),
    (BreakerState.CLOSED, SilenceLevel.FEW): (BreakerState.CLOSED, True),
    (BreakerState.CLOSED, SilenceLevel.MANY): (BreakerState.OPEN, False),
    (BreakerState.OPEN, SilenceLevel.NONE): (BreakerState.CLOSED, True),
    (BreakerState.OPEN, SilenceLevel.FEW): (BreakerState.OPEN, False),
    (BreakerState.OPEN, SilenceLevel.MANY): (BreakerState.OPEN, False),
    (BreakerState.EXPIRED, SilenceLevel.NONE): (BreakerState.CLOSED, True),
    (BreakerState.EXPIRED, SilenceLevel.FEW): (BreakerState.OVERRIDDEN, True),
    (BreakerState.EXPIRED, SilenceLevel.MANY): (BreakerState.OVERRIDDEN, True),
    (BreakerState.OVERRIDDEN, SilenceLevel.NONE): (BreakerState.CLOSED, True),
    (BreakerState.OVERRIDDEN, SilenceLevel.FEW): (BreakerState.CLOSED, True),
    (BreakerState.OVERRIDDEN, SilenceLevel.MANY): (BreakerState.OVERRIDDEN, True),
}


def silence_level(silence: SilenceCounts) -> SilenceLevel:
    """Classify the numbers; without newly silent seeds the level is NONE."""
    if not silence.newly_silent:
        return SilenceLevel.NONE
    together = silence.newly_silent + silence.quiet + silence.recently_expired
    many = together >= MIN_SEEDS_TO_OPEN and together > SHARE_TO_OPEN * silence.watched
    return SilenceLevel.MANY if many else SilenceLevel.FEW


def advance_breaker(
    breaker: CircuitBreaker, silence: SilenceCounts, *, now: float, monitor_period: float
) -> BreakerTransition:
    """Advance the breaker after an assessment."""
    is_expired = breaker.state is BreakerState.OPEN and now >= breaker.since + monitor_period
    state, allows_expiry = _NEXT[BreakerState.EXPIRED if is_expired else breaker.state, silence_level(silence)]
    moved = breaker if state is breaker.state else CircuitBreaker(state, now)
    return BreakerTransition(moved, allows_expiry, opened_now=state is BreakerState.OPEN and moved is not breaker)
