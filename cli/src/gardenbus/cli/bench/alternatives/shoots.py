"""Shoots in Redis without anybody who looks after them: a store opened by the measurer, and records written at once."""

from collections.abc import Sequence
from uuid import UUID

from gardenbus.cli.bench.manifests import names, shoot
from gardenbus.cli.bench.rig import BenchFailed, Rig
from gardenbus.common.adapters.redis_records import restored_fields
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey

LEAD_SECONDS = 3600.0
_DAY = "2026-01-02T03:04:05Z"


def documents(prefix: str, count: int) -> list[Document]:
    """Pending shoots of about 3 KB, as they stand in the store."""
    made = [shoot(name, number, "uniform") for number, name in enumerate(names(prefix, count))]
    for number, document in enumerate(made, start=1):
        document["metadata"] |= {"uid": str(UUID(int=number)), "generation": 1, "creationTimestamp": _DAY}
    return made


def key_of(document: Document) -> ObjectKey:
    """A shoot's key."""
    return ObjectKey("shoot", document["metadata"]["namespace"], document["metadata"]["name"])


async def write_records(rig: Rig, shoots: Sequence[Document]) -> list[ObjectKey]:
    """Write the records alone, without indexes: all that reading needs."""
    keys = [key_of(document) for document in shoots]
    commands: list[tuple[str | bytes | int | float, ...]] = []
    for version, (key, document) in enumerate(zip(keys, shoots, strict=True), start=1):
        fields = restored_fields(document, version) | {"ver": str(version)}
        flat = [part for name, value in fields.items() if value for part in (name, value)]
        commands.append(("HSET", rig.redis.key(f"o:{key.stored}"), *flat))
    await rig.redis.pipeline(commands)
    return keys


async def open_store(rig: Rig) -> None:
    """Open the store for writes, as a relay would that has compared it with the bus."""
    outbox = rig.outbox()
    if not (await outbox.lead(LEAD_SECONDS)).leading:
        raise BenchFailed("somebody else leads")
    await outbox.open(0, 0)
