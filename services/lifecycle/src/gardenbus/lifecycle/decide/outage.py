"""Whether silence means anything: the canary, and the brake.

**Canary.** Lifecycle renews a Lease of its own. As long as that comes back through the same stream as the seeds'
Leases, the bus stores, delivers, and this process listens. When it stayed away for longer than a quarter of the monitor
period, the silence of seeds in that time says nothing, and every seed gets a full period from the moment it is heard
again. A quarter leaves a living gardenlet three quarters to come back after an interruption that nobody noticed.

**Brake.** When most seeds fall silent together, a mistake of ours is likelier than that they all died. Seeds that are
quiet (nothing for half a period, though not yet a whole one) count as well once a first one has fallen silent: else
those that happened to renew first would be written off before the others make it visible that something is wrong.

A seed that is still silent when others come back stays held until the period is over: it may be the next to come back.

| phase | silent | next | believe |
|---|---|---|---|
| released | none, few | released | yes |
| released | many | holding | no, say so |
| holding | none | released | yes |
| holding | few, many | holding | no |
| overdue (held for a period) | none | released | yes |
| overdue | few, many | believing | yes |
| believing | many | believing | yes |
| believing | none, few | released | yes |
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from gardenbus.lifecycle.decide.freshness import NEVER

FEWEST_FOR_BRAKE = 10
SHARE_FOR_BRAKE = 0.55
_DEAF_SHARE = 0.25
_QUIET_SHARE = 0.5


class Hearing(NamedTuple):
    """When the canary was heard last, and since when without a gap. `NEVER`: not yet."""

    last_heard_at: float = NEVER
    well_since: float = NEVER


def longest_gap(monitor_period: float) -> float:
    """Seconds for which the canary may stay away without meaning an outage."""
    return monitor_period * _DEAF_SHARE


def quiet_time(monitor_period: float) -> float:
    """Seconds without a renewal after which a seed, though alive, counts for the brake."""
    return monitor_period * _QUIET_SHARE


def heard(hearing: Hearing, now: float, monitor_period: float) -> Hearing:
    """The canary arrived just now."""
    if is_deaf(hearing, now, monitor_period):
        return Hearing(now, now)
    return Hearing(now, hearing.well_since)


def cut() -> Hearing:
    """This process was cut off (connection lost, stream new): begin again with the next canary."""
    return Hearing()


def adopted(*, arrived_at: float, well_since: float, now: float, monitor_period: float) -> Hearing:
    """What a starting process may believe of a canary that it finds: how long the bus has been well already."""
    if now - arrived_at > longest_gap(monitor_period):
        return Hearing()
    return Hearing(arrived_at, min(well_since, arrived_at))


def is_deaf(hearing: Hearing, now: float, monitor_period: float) -> bool:
    """Whether silence means nothing now."""
    return now - hearing.last_heard_at > longest_gap(monitor_period)


class Phase(Enum):
    """Where the brake stands; see the table of the module. OVERDUE is never stored: holding turns into it by time."""

    RELEASED = "released"
    HOLDING = "holding"
    OVERDUE = "overdue"
    BELIEVING = "believing"


class Sight(Enum):
    """How many are silent: nobody, somebody, or so many together that it is suspicious."""

    NONE = "none"
    FEW = "few"
    MANY = "many"


class Silence(NamedTuple):
    """What a look counted.

    `unbelieved` seeds are silent and not written off yet, `quiet` ones are about to be, `just_believed` ones expired
    within the last period and were written off; `watched` is all of them and the living.
    """

    unbelieved: int
    quiet: int
    just_believed: int
    watched: int


class Brake(NamedTuple):
    """The brake's phase and since when it is in it."""

    phase: Phase = Phase.RELEASED
    since: float = NEVER


class BrakeStep(NamedTuple):
    """What the brake says of a look: are the silent seeds believed to be dead, and is there something to say."""

    brake: Brake
    believes: bool
    engaged_now: bool = False


_NEXT: Mapping[tuple[Phase, Sight], tuple[Phase, bool]] = {
    (Phase.RELEASED, Sight.NONE): (Phase.RELEASED, True),
    (Phase.RELEASED, Sight.FEW): (Phase.RELEASED, True),
    (Phase.RELEASED, Sight.MANY): (Phase.HOLDING, False),
    (Phase.HOLDING, Sight.NONE): (Phase.RELEASED, True),
    (Phase.HOLDING, Sight.FEW): (Phase.HOLDING, False),
    (Phase.HOLDING, Sight.MANY): (Phase.HOLDING, False),
    (Phase.OVERDUE, Sight.NONE): (Phase.RELEASED, True),
    (Phase.OVERDUE, Sight.FEW): (Phase.BELIEVING, True),
    (Phase.OVERDUE, Sight.MANY): (Phase.BELIEVING, True),
    (Phase.BELIEVING, Sight.NONE): (Phase.RELEASED, True),
    (Phase.BELIEVING, Sight.FEW): (Phase.RELEASED, True),
    (Phase.BELIEVING, Sight.MANY): (Phase.BELIEVING, True),
}


def sight_of(silence: Silence) -> Sight:
    """Judge the numbers: as long as nobody new is silent there is no question."""
    if not silence.unbelieved:
        return Sight.NONE
    together = silence.unbelieved + silence.quiet + silence.just_believed
    many = together >= FEWEST_FOR_BRAKE and together > SHARE_FOR_BRAKE * silence.watched
    return Sight.MANY if many else Sight.FEW


def step_brake(brake: Brake, silence: Silence, *, now: float, monitor_period: float) -> BrakeStep:
    """Move the brake after a look."""
    is_overdue = brake.phase is Phase.HOLDING and now >= brake.since + monitor_period
    phase, believes = _NEXT[Phase.OVERDUE if is_overdue else brake.phase, sight_of(silence)]
    moved = brake if phase is brake.phase else Brake(phase, now)
    return BrakeStep(moved, believes, engaged_now=phase is Phase.HOLDING and moved is not brake)
