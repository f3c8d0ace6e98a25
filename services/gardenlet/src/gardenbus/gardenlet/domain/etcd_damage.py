"""Signs in the log of an etcd that it cannot read its data.

Seen with etcd 3.6 whose files had been cut off or overwritten: an invalid database, damaged pages, a fault in bbolt,
and records of the WAL that cannot be read. The other signs are words of etcd's sources.
"""

BEGINNING = '"msg":"Running: "'
"""In the log where an etcd has begun."""

_SIGNS = (
    "invalid database",
    "panic: assertion failed: Page expected to be",
    "panic: freepages: failed to get all reachable pages",
    "panic: cannot use none as id",
    "crc mismatch",
    "checksum error",
    "proto: Record: ",
    "proto: illegal wireType",
    "max entry size limit exceeded",
    "Was the raft log corrupted, truncated, or lost?",
)
_FAULT = ("fatal error: fault", "go.etcd.io/bbolt")
"""Both are in the log where the database is shorter than it says."""


def etcd_damage(log: str) -> str | None:
    """The sign, in the end of a log, that the etcd which ended last could not read its data; None if there is none."""
    last = log.rpartition(BEGINNING)[2]
    if all(each in last for each in _FAULT):
        return "the database is cut off"
    return next((sign.strip(" :") for sign in _SIGNS if sign in last), None)
