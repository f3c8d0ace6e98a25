"""One look at all seeds: who is silent, and whether that is believed."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from gardenbus.common.resources.conditions import UNKNOWN, conditions_of, get_condition
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.seeds import GARDENLET_READY
from gardenbus.lifecycle.decide.conditions import STATUS_UNKNOWN
from gardenbus.lifecycle.decide.freshness import LeaseRecord, expires_at
from gardenbus.lifecycle.decide.outage import Brake, Hearing, Silence, is_deaf, longest_gap, quiet_time, step_brake

_decode = msgspec.json.Decoder().decode


class WatchedSeed(NamedTuple):
    """What a look needs to know of a Seed.

    `was_heard_of`: it has conditions, so a gardenlet has reported once. `is_believed_dead`: it was written off already.
    """

    was_heard_of: bool
    is_believed_dead: bool


def watched_seed(stored: StoredObject) -> WatchedSeed:
    """Read what a look needs."""
    status: object = _decode(b"{" + stored.parts.status + b"}")
    conditions = conditions_of({"status": status})
    ready = get_condition(conditions, GARDENLET_READY) or {}
    return WatchedSeed(
        was_heard_of=bool(conditions),
        is_believed_dead=ready.get("status") == UNKNOWN and ready.get("reason") == STATUS_UNKNOWN,
    )


class Postponed(NamedTuple):
    """Silence means nothing at the moment; look again when the canary has been heard, or after `again_in` seconds."""

    again_in: float


class Looked(NamedTuple):
    """The silent seeds to act on, by name; `held` more are silent but not believed to be dead yet.

    `next_expiry_at` is when the next seed falls silent if it is not heard of; `engaged_now` tells that the brake has
    just been put on, for `held` of `watched` seeds.
    """

    brake: Brake
    silent: tuple[str, ...]
    held: int
    watched: int
    next_expiry_at: float
    engaged_now: bool


Outlook = Postponed | Looked


def look(
    seeds: Mapping[str, WatchedSeed],
    records: Mapping[str, LeaseRecord],
    *,
    hearing: Hearing,
    brake: Brake,
    now: float,
    monitor_period: float,
) -> Outlook:
    """Judge all seeds at once. Seeds that no gardenlet has ever reported for are left alone."""
    if is_deaf(hearing, now, monitor_period):
        return Postponed(longest_gap(monitor_period))
    newly_silent: list[str] = []
    written_off: list[str] = []
    watched = quiet = just_believed = 0
    quiet_below = now + monitor_period - quiet_time(monitor_period)
    next_expiry_at = now + monitor_period
    for name, seed in seeds.items():
        if not seed.was_heard_of:
            continue
        watched += 1
        record = records.get(name)
        expiry = expires_at(record, well_since=hearing.well_since, monitor_period=monitor_period)
        if expiry > now:
            quiet += expiry < quiet_below
            next_expiry_at = min(next_expiry_at, expiry)
        elif seed.is_believed_dead:
            written_off.append(name)
            just_believed += record is not None and record.arrived_at > now - 2 * monitor_period
        else:
            newly_silent.append(name)
    silence = Silence(len(newly_silent), quiet, just_believed, watched)
    step = step_brake(brake, silence, now=now, monitor_period=monitor_period)
    if not step.believes:
        next_expiry_at = min(next_expiry_at, step.brake.since + monitor_period)
    return Looked(
        brake=step.brake,
        silent=tuple(sorted([*written_off, *newly_silent] if step.believes else written_off)),
        held=0 if step.believes else len(newly_silent),
        watched=watched,
        next_expiry_at=next_expiry_at,
        engaged_now=step.engaged_now,
    )
