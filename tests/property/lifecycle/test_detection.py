"""Failure detection in virtual time: seeds, bus and lifecycle fail as hypothesis generates it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.lifecycle.domain.assessment import SeedsAssessed, WatchedSeed, assess_seeds
from gardenbus.lifecycle.domain.freshness import LeaseRecord, NotNewer, accept_heartbeat
from gardenbus.lifecycle.domain.outage import CircuitBreaker, ProbeState, probe_adopted, probe_received

PERIOD = 40.0
SYNC = 10.0
RENEWAL = 2.0
RECONNECT = 5.0
STEP = 1.0
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Trouble:
    """The bus or lifecycle is away from `start` for `length` seconds. A lifecycle that is `lost` forgets everything."""

    what: str
    start: float
    length: float

    def holds(self, now: float) -> bool:
        return self.start <= now < self.start + self.length


@dataclass
class Lifecycle:
    """State of one process, changed by the decisions alone."""

    records: dict[str, LeaseRecord] = field(default_factory=dict[str, LeaseRecord])
    probe: ProbeState = field(default_factory=ProbeState)
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    next_check: float = 0.0

    def take(self, seed: str, renewed: datetime, arrived_at: float) -> None:
        record = self.records.get(seed, LeaseRecord())
        beat = accept_heartbeat(
            record,
            renewed,
            server_time=EPOCH + timedelta(seconds=arrived_at),
            arrived_at=arrived_at,
            tolerance=timedelta(seconds=PERIOD),
        )
        if not isinstance(beat, NotNewer):
            self.records[seed] = beat.record


class World:
    """Seeds that renew every two seconds (with clocks of their own), a stream that keeps a Lease for a period."""

    def __init__(self, troubles: Sequence[Trouble], deaths: dict[str, float | None]) -> None:
        self.troubles = troubles
        self.deaths = deaths
        self.stream: dict[str, tuple[float, datetime]] = {}
        self.probe_lease: tuple[float, float] | None = None
        self.lifecycle = Lifecycle()
        self.believed_at: dict[str, float] = {}
        self.was_away = ""

    def run(self, until: float) -> None:
        now = 0.0
        while now <= until:
            self.tick(now)
            now += STEP

    def tick(self, now: float) -> None:
        for stale in [seed for seed, (at, _) in self.stream.items() if at + PERIOD <= now]:
            del self.stream[stale]
        away = {trouble.what for trouble in self.troubles if trouble.holds(now)}
        if "bus" not in away:
            self.renew(now)
        if away:
            self.was_away = "lost" if "lost" in away or self.was_away == "lost" else "cut"
            return
        if self.was_away:
            self.come_back(now)
        self.probe_returned(now)
        if now >= self.lifecycle.next_check:
            self.assess_seeds(now)

    def renew(self, now: float) -> None:
        bus_back_at = max(
            (t.start + t.length for t in self.troubles if t.what == "bus" and t.start <= now), default=-99
        )
        for number, (seed, death) in enumerate(self.deaths.items()):
            if (death is not None and now >= death) or now < bus_back_at + RECONNECT or (now + number) % RENEWAL:
                continue
            renewed = EPOCH + timedelta(seconds=now + 7 * number)
            self.stream[seed] = (now, renewed)
            if not self.was_away and not any(t.holds(now) for t in self.troubles):
                self.lifecycle.take(seed, renewed, now)

    def come_back(self, now: float) -> None:
        if self.was_away == "lost":
            self.lifecycle = Lifecycle(next_check=now)
            if self.probe_lease is not None and self.probe_lease[0] + PERIOD > now:
                at, since = self.probe_lease
                self.lifecycle.probe = probe_adopted(arrived_at=at, healthy_since=since, now=now, monitor_period=PERIOD)
        for seed, (at, renewed) in self.stream.items():
            self.lifecycle.take(seed, renewed, at)
        self.was_away = ""

    def probe_returned(self, now: float) -> None:
        self.lifecycle.probe = probe_received(self.lifecycle.probe, now, PERIOD)
        self.probe_lease = (now, self.lifecycle.probe.healthy_since)

    def assess_seeds(self, now: float) -> None:
        seeds = {seed: WatchedSeed(has_reported=True, is_expired=seed in self.believed_at) for seed in self.deaths}
        process = self.lifecycle
        assessment = assess_seeds(
            seeds, process.records, probe=process.probe, breaker=process.breaker, now=now, monitor_period=PERIOD
        )
        if isinstance(assessment, SeedsAssessed):
            process.breaker = assessment.breaker
            process.next_check = max(now + STEP, min(assessment.next_expiry_at, now + SYNC))
            for seed in assessment.silent:
                self.believed_at.setdefault(seed, now)


troubles = st.lists(
    st.builds(
        Trouble,
        what=st.sampled_from(["bus", "cut", "lost"]),
        start=st.integers(60, 300).map(float),
        length=st.integers(1, 150).map(float),
    ),
    max_size=4,
)
few_deaths = st.lists(st.one_of(st.none(), st.integers(50, 300).map(float)), min_size=1, max_size=8)


def named(deaths: Sequence[float | None]) -> dict[str, float | None]:
    return {f"seed-{number}": death for number, death in enumerate(deaths)}


@given(troubles=troubles, deaths=few_deaths)
@settings(max_examples=150, deadline=None)
def test_no_outage_kills_a_living_seed_and_the_dead_are_found_in_time(
    troubles: list[Trouble], deaths: list[float | None]
) -> None:
    world = World(troubles, named(deaths))
    world.run(700)
    for seed, death in world.deaths.items():
        if death is None:
            assert seed not in world.believed_at
            continue
        assert world.believed_at[seed] >= death, "nobody is dead before dying"
        quiet_since = max([death, *(trouble.start + trouble.length for trouble in troubles)])
        assert world.believed_at[seed] <= quiet_since + PERIOD + SYNC


@given(deaths=few_deaths)
@settings(max_examples=50, deadline=None)
def test_on_a_quiet_day_a_dead_seed_is_found_within_the_monitor_and_the_sync_period(deaths: list[float | None]) -> None:
    world = World([], named(deaths))
    world.run(500)
    assert set(world.believed_at) == {seed for seed, death in world.deaths.items() if death is not None}
    for seed, found in world.believed_at.items():
        death = world.deaths[seed]
        assert death is not None
        assert death - RENEWAL + PERIOD <= found <= death + PERIOD + SYNC


@given(restart=st.integers(101, 145).map(float), length=st.integers(1, 8).map(float))
@settings(max_examples=30, deadline=None)
def test_a_quick_restart_of_lifecycle_does_not_make_a_dead_seed_older(restart: float, length: float) -> None:
    world = World([Trouble("lost", restart, length)], named([100.0, None]))
    world.run(250)
    assert world.believed_at["seed-0"] <= 100 + PERIOD + SYNC + length
    assert "seed-1" not in world.believed_at


@given(
    dead=st.integers(10, 30), living=st.integers(0, 20), at=st.integers(60, 100).map(float), spread=st.integers(0, 9)
)
@settings(max_examples=100, deadline=None)
def test_when_most_seeds_die_together_it_is_believed_one_period_later(
    dead: int, living: int, at: float, spread: int
) -> None:
    deaths = [at + number * spread / dead for number in range(dead)]
    world = World([], named([*deaths, *[None] * living]))
    world.run(300)
    assert set(world.believed_at) == {f"seed-{number}" for number in range(dead)}
    last = max(world.believed_at.values())
    assert last <= at + spread + 2 * PERIOD + SYNC
    if spread == 0:
        many = dead > 0.55 * (dead + living)
        assert (last > at + PERIOD + SYNC) == many


@given(silent=st.integers(10, 25), others=st.integers(0, 5), away=st.integers(35, 75).map(float))
@settings(max_examples=50, deadline=None)
def test_a_partition_of_most_seeds_that_heals_within_two_periods_kills_nobody(
    silent: int, others: int, away: float
) -> None:
    """The probe arrives, but most gardenlets do not reach the bus: only the circuit breaker protects them."""
    gone, back = 100.0, 100.0 + away
    world = World([], named([gone] * silent + [None] * others))
    now = 0.0
    while now <= 300:
        if now == back:
            world.deaths.update(dict.fromkeys(world.deaths))
        world.tick(now)
        now += STEP
    assert world.believed_at == {}
