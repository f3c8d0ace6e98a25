"""Metrics of the relay: its own work, and the state of the two servers.

Every replica exports the state of the servers; aggregate by the maximum, not the sum.
"""

from prometheus_client import Counter, Gauge, Histogram

ANNOUNCED = Counter("gardenbus_relay_announced_total", "Outbox entries announced and trimmed.")
LEADING = Gauge("gardenbus_relay_leading", "1 while this relay leads, 0 while it stands by.")
ANNOUNCE_DELAY = Histogram(
    "gardenbus_relay_announce_delay_seconds",
    "Time from a write until its announcement was acknowledged, of the oldest entry of each page.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60),
)
LOST_MESSAGES = Gauge(
    "gardenbus_relay_lost_messages",
    "Messages of a stream that went back, or were acknowledged by a store that did, in the last 7 days.",
    ["stream"],
)
RECOVERING = Gauge(
    "gardenbus_relay_recovering", "1 while a store that was restored or rebuilt waits for its seeds, by who leads."
)
RECOVERING_SEEDS = Gauge("gardenbus_relay_recovery_silent_seeds", "Seeds that a recovery of the store waits for.")
OBSOLETE_REMOVED = Counter(
    "gardenbus_relay_obsolete_messages_removed_total",
    "Announcements of what is gone or elsewhere, brought back by a NATS that was killed or restored, and removed.",
    ["stream"],
)
OBSERVATION_FAILURES = Counter(
    "gardenbus_relay_observation_failures_total", "Times that the servers could not be counted.", ["server"]
)

BACKUPS = Counter("gardenbus_relay_backups_total", "Backups that this relay has made.", ["kind"])
BACKUP_FAILURES = Counter("gardenbus_relay_backup_failures_total", "Backups that could not be made.")
BACKUP_TAKEN_AT = Gauge(
    "gardenbus_relay_backup_taken_timestamp_seconds",
    "Up to when everything is in a backup, in seconds since the epoch, by the relay that leads; 0 elsewhere.",
)

CANNOT_WRITE = Gauge(
    "gardenbus_server_cannot_write",
    "1 while a server that responds does not write: its disk is full, or was.",
    ["server"],
)

OUTBOX_ENTRIES = Gauge("gardenbus_outbox_entries", "Entries of the outbox that are not announced yet.")
OUTBOX_AGE = Gauge("gardenbus_outbox_oldest_entry_age_seconds", "How long the oldest entry of the outbox has waited.")
OBJECTS = Gauge("gardenbus_store_objects", "Objects in the store.", ["kind"])
PENDING = Gauge("gardenbus_store_pending_shoots", "Shoots without a seed: waiting, or being decided.")
EQUIVALENCE_CLASSES = Gauge("gardenbus_store_waiting_classes", "Equivalence classes of unschedulable shoots.")
MEMORY = Gauge("gardenbus_redis_memory_used_bytes", "Memory that Redis uses for its data.")
MEMORY_LIMIT = Gauge("gardenbus_redis_memory_limit_bytes", "Memory that Redis may use, 0 without a limit.")

STREAM_MESSAGES = Gauge("gardenbus_stream_messages", "Messages in a stream.", ["stream"])
STREAM_BYTES = Gauge("gardenbus_stream_size_bytes", "What a stream takes on disk.", ["stream"])
STREAM_AGE = Gauge("gardenbus_stream_oldest_message_age_seconds", "Age of a stream's oldest message.", ["stream"])
CONSUMER_PENDING = Gauge(
    "gardenbus_consumer_pending_messages", "Messages that are not delivered yet.", ["stream", "consumer"]
)
CONSUMER_IN_FLIGHT = Gauge(
    "gardenbus_consumer_unacknowledged_messages", "Messages that are in flight.", ["stream", "consumer"]
)
CONSUMER_REDELIVERED = Gauge(
    "gardenbus_consumer_redelivered_messages",
    "Messages in flight that were delivered more than once.",
    ["stream", "consumer"],
)
STORAGE = Gauge("gardenbus_jetstream_storage_used_bytes", "What all streams of the account take on disk.")
STORAGE_LIMIT = Gauge("gardenbus_jetstream_storage_limit_bytes", "What they may take, 0 without a limit.")
