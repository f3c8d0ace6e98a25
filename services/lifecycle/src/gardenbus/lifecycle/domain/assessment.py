"""Assessment of all seeds: the silent ones, and whether their silence is believed."""

from collections.abc import Mapping
from typing import NamedTuple

from gardenbus.common.api.conditions import FALSE, UNKNOWN, condition_status, conditions_of, get_condition
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.seeds import GARDENLET_READY, OBJECTS_CONDITION
from gardenbus.lifecycle.domain.conditions import STATUS_UNKNOWN
from gardenbus.lifecycle.domain.freshness import LeaseRecord, expires_at
from gardenbus.lifecycle.domain.outage import (
    CircuitBreaker,
    ProbeState,
    SilenceCounts,
    advance_breaker,
    is_probe_lost,
    max_probe_gap,
    quiet_time,
)

_decode = json_decoder()


class WatchedSeed(NamedTuple):
    """The part of a Seed that the assessment needs.

    `has_reported`: it has conditions, so a gardenlet has reported once. `is_expired`: it was turned Unknown already.
    `has_unknown`: objects run on it that the store neither has nor remembers.
    """

    has_reported: bool
    is_expired: bool
    has_unknown: bool = False


def watched_seed(stored: StoredObject) -> WatchedSeed:
    """Read the part that the assessment needs."""
    status: object = _decode(b"{" + stored.parts.status + b"}")
    conditions = conditions_of({"status": status})
    ready = get_condition(conditions, GARDENLET_READY) or {}
    return WatchedSeed(
        has_reported=bool(conditions),
        is_expired=ready.get("status") == UNKNOWN and ready.get("reason") == STATUS_UNKNOWN,
        has_unknown=condition_status(conditions, OBJECTS_CONDITION) == FALSE,
    )


class AssessmentPostponed(NamedTuple):
    """Silence means nothing at present; assess again when the probe is back, or after `retry_seconds`."""

    retry_seconds: float


class SeedsAssessed(NamedTuple):
    """The silent seeds to expire, by name; `held` more are silent but held by the circuit breaker.

    `next_expiry_at` is when the next seed expires unless it renews; `opened_now`: the breaker has just opened, for
    `held` of `watched` seeds.
    """

    breaker: CircuitBreaker
    silent: tuple[str, ...]
    held: int
    watched: int
    next_expiry_at: float
    opened_now: bool


Assessment = AssessmentPostponed | SeedsAssessed


def assess_seeds(
    seeds: Mapping[str, WatchedSeed],
    records: Mapping[str, LeaseRecord],
    *,
    probe: ProbeState,
    breaker: CircuitBreaker,
    now: float,
    monitor_period: float,
) -> Assessment:
    """Assess all seeds. Seeds that no gardenlet has ever reported for are skipped."""
    if is_probe_lost(probe, now, monitor_period):
        return AssessmentPostponed(max_probe_gap(monitor_period))
    newly_silent: list[str] = []
    already_expired: list[str] = []
    quiet = recently_expired = 0
    quiet_below = now + monitor_period - quiet_time(monitor_period)
    next_expiry_at = now + monitor_period
    watched = {name: seed for name, seed in seeds.items() if seed.has_reported}
    for name, seed in watched.items():
        record = records.get(name)
        expiry = expires_at(record, healthy_since=probe.healthy_since, monitor_period=monitor_period)
        if expiry > now:
            quiet += expiry < quiet_below
            next_expiry_at = min(next_expiry_at, expiry)
        elif seed.is_expired:
            already_expired.append(name)
            recently_expired += record is not None and record.arrived_at > now - 2 * monitor_period
        else:
            newly_silent.append(name)
    silence = SilenceCounts(len(newly_silent), quiet, recently_expired, len(watched))
    step = advance_breaker(breaker, silence, now=now, monitor_period=monitor_period)
    if not step.allows_expiry:
        next_expiry_at = min(next_expiry_at, step.breaker.since + monitor_period)
    return SeedsAssessed(
        breaker=step.breaker,
        silent=tuple(sorted([*already_expired, *newly_silent] if step.allows_expiry else already_expired)),
        held=0 if step.allows_expiry else len(newly_silent),
        watched=len(watched),
        next_expiry_at=next_expiry_at,
        opened_now=step.opened_now,
    )
