"""Prometheus metrics of lifecycle.

Every replica reports the same seeds: aggregate by maximum, not by sum.
"""

from prometheus_client import Counter, Gauge

SEEDS_WATCHED = Gauge("gardenbus_lifecycle_seeds_watched", "Seeds that a gardenlet has reported for.")
SEEDS_SILENT = Gauge("gardenbus_lifecycle_seeds_silent", "Seeds that are believed to be dead.")
SEEDS_HELD = Gauge("gardenbus_lifecycle_seeds_held", "Seeds that are silent but held by the circuit breaker.")
SEEDS_EXPIRED = Counter(
    "gardenbus_lifecycle_seeds_expired_total", "Times that a Seed was turned Unknown by this process."
)
SHOOTS_EXPIRED = Counter(
    "gardenbus_lifecycle_shoots_expired_total", "Times that a Shoot was turned Unknown by this process."
)
BREAKER_OPENED = Counter("gardenbus_lifecycle_brake_engaged_total", "Times that most seeds fell silent together.")
ASSESSMENTS_POSTPONED = Counter(
    "gardenbus_lifecycle_looks_postponed_total", "Assessments postponed because the bus was unavailable."
)
ASSESSMENT_SECONDS = Gauge(
    "gardenbus_lifecycle_look_seconds", "Duration of the last assessment of all seeds, writes included."
)

_LEASES = Counter(
    "gardenbus_lifecycle_leases_received_total",
    "Leases by what they state: renewed, ahead (by a clock that runs ahead), repeated, unreadable.",
    ["result"],
)
LEASE_RENEWED = _LEASES.labels("renewed")
LEASE_AHEAD = _LEASES.labels("ahead")
LEASE_REPEATED = _LEASES.labels("repeated")
LEASE_UNREADABLE = _LEASES.labels("unreadable")
LEASES_LATE = Gauge(
    "gardenbus_lifecycle_leases_late", "Seeds that were not heard of for longer than half of the monitor period."
)
LEASE_OLDEST = Gauge(
    "gardenbus_lifecycle_lease_oldest_age_seconds", "Time since the seed was heard of that is silent for longest."
)

HISTORY_CURRENT = Gauge(
    "gardenbus_lifecycle_history_current_timestamp_seconds",
    "Time at which the history last had a point of the present minute, whichever replica wrote it.",
)

SEEDS = Gauge(
    "gardenbus_seeds",
    "Seeds by their worst state: deleting, unknown (no heartbeats), not-ready, cordoned, ready.",
    ["state", "provider", "region"],
)
USED = Gauge("gardenbus_seeds_shoots_used", "Shoots that count on seeds.", ["provider", "region"])
ALLOCATABLE = Gauge(
    "gardenbus_seeds_shoots_allocatable",
    "Shoots that seeds take; those that take any number are left out.",
    ["provider", "region"],
)

SEED_USED = Gauge(
    "gardenbus_seed_shoots_used", "Shoots that count on a seed (with GARDENBUS_PER_SEED_METRICS only).", ["seed"]
)
SEED_ALLOCATABLE = Gauge(
    "gardenbus_seed_shoots_allocatable", "Shoots that a seed takes (with GARDENBUS_PER_SEED_METRICS only).", ["seed"]
)
SEED_READY = Gauge("gardenbus_seed_ready", "1 while a seed is ready (with GARDENBUS_PER_SEED_METRICS only).", ["seed"])
