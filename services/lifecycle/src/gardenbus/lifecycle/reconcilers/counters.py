"""What lifecycle counts, for Prometheus."""

from prometheus_client import Counter, Gauge

SEEDS_WATCHED = Gauge("gardenbus_lifecycle_seeds_watched", "Seeds that a gardenlet has reported for")
SEEDS_SILENT = Gauge("gardenbus_lifecycle_seeds_silent", "Seeds that are believed to be dead")
SEEDS_HELD = Gauge("gardenbus_lifecycle_seeds_held", "Seeds that are silent but held by the brake on mass expiry")
SEEDS_EXPIRED = Counter("gardenbus_lifecycle_seeds_expired", "Times that a Seed was turned Unknown by this process")
SHOOTS_EXPIRED = Counter("gardenbus_lifecycle_shoots_expired", "Times that a Shoot was turned Unknown by this process")
BRAKE_ENGAGED = Counter("gardenbus_lifecycle_brake_engaged", "Times that most seeds fell silent together")
LOOKS_POSTPONED = Counter("gardenbus_lifecycle_looks_postponed", "Looks put off because the bus was not well")
LOOK_SECONDS = Gauge("gardenbus_lifecycle_look_seconds", "How long the last look at all seeds took, writes included")
