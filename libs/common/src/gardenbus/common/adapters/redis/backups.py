"""Backups of the store on Redis: `ports.backups.BackupStore` over functions/backups.lua."""

import asyncio
import base64
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.api.keys import CLUSTER_SCOPE
from gardenbus.common.errors import Conflict, NotFound
from gardenbus.common.ports.backups import BackupPage, BackupRecord, RedisValue, RestoreResult, StoreState
from gardenbus.common.ports.clock import timestamp

PAGE = 100
"""Records a page: Redis serves nobody else meanwhile (a few milliseconds)."""

LEAD_MILLISECONDS = 30_000
"""Life of the lead of a restore that died; each page of records renews it."""

_DROPPED = frozenset({"class", "cnt", "fol", "pmsg", "tp", "tried", "tries"})
"""Fields of a shoot that follow from the others, or from what the schedulers tried: found anew."""


class RedisBackups:
    """See `ports.backups.BackupStore`."""

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        self._leader = ""

    async def page(self, after: int, *, is_delta: bool = False) -> BackupPage:
        """Read a page of both indexes."""
        operation = {"after": after, "limit": PAGE, "is_delta": is_delta}
        reply = await self._connection.call("backup_page", operation, read_only=True)
        if reply[0] == b"collected":
            raise NotFound(f"removals above version {after} are not remembered any more: a full backup is needed")
        _, opening, store_format, version, is_last, entries, state = reply
        records = [
            BackupRecord(key.decode(), int(number), _mapping(fields), bool(is_removed))
            for key, number, is_removed, fields in entries
        ]
        return BackupPage(opening.decode(), store_format, int(version), records, _state(state) if is_last else None)

    async def changes(self, after: int) -> tuple[str, int]:
        """Count in both indexes."""
        _, count, opening = await self._connection.call("backup_changes", {"after": after}, read_only=True)
        return opening.decode(), int(count)

    async def has_any(self, objects: Sequence[BackupRecord]) -> bool:
        """Look in the index of uids, then at what is remembered of removals."""
        uids = [uid if isinstance(uid := each.fields.get("uid"), str) else "" for each in objects]
        if any(await self._connection.command("HMGET", self._connection.key("uids"), *uids)):
            return True
        dead = [self._connection.key(f"dead:{each.key}") for each in objects]
        removed = await asyncio.gather(*(self._connection.command("HGET", key, "uid") for key in dead))
        return any(found and found.decode() == uid for found, uid in zip(removed, uids, strict=True))

    async def begin_restore(self, name: str, leader: str, store_format: int) -> None:
        """Take the lead."""
        await self._connection.ensure_library()
        await self._connection.ensure_replicas()
        self._leader = leader
        operation = {"name": name, "leader": leader, "ttl_ms": LEAD_MILLISECONDS, "format": store_format}
        reply = await self._connection.call("restore_begin", operation)
        rejections = {
            b"newer": "the backup is of a store of format {0}, which this version of gardenbus does not read: restore "
            "with the version that made it, or a later one",
            b"other": "{0} leads the store: a relay, or another restore, of which a lead stays half a minute; "
            "stop all services but gardenlets and member agents first",
            b"not-empty": "the store has {0} objects: a backup goes into an empty one, so empty this Redis, or name "
            "another (--redis-url, --prefix)",
            b"begun": "a restore of {0} was begun here and has not ended: end it (--to {0}), or empty this Redis",
        }
        if reply[0] in rejections:
            found = reply[1].decode() if isinstance(reply[1], bytes) else str(reply[1])
            raise Conflict(rejections[reply[0]].format(found))

    async def restore(self, records: Sequence[BackupRecord]) -> None:
        """Store records, pipelined."""
        for reply in await self._connection.call_many("restore_record", [self._restoring(each) for each in records]):
            _check_lead(reply)

    async def finish_restore(
        self, state: StoreState, taken_at: str, owners: Sequence[str], restored: RestoreResult, *, put_back: str = ""
    ) -> RestoreResult:
        """Store what is small."""
        operation = {
            "leader": self._leader,
            "numbers": state.numbers,
            "hashes": [[_hex(part) for pair in each.items() for part in pair] for each in state.hashes],
            "losses": state.losses,
            "taken_at": taken_at,
            "now": timestamp(datetime.now(UTC)),
            "owners": owners,
            "put_back": put_back,
        }
        status, *counts = _check_lead(await self._connection.call("restore_finish", operation | restored._asdict()))
        found = RestoreResult(*map(int, counts))
        if status == b"incomplete":
            raise Conflict(
                f"the store has {found.objects} of {restored.objects} objects and {found.removals} of "
                f"{restored.removals} removals: was another Redis promoted meanwhile? Restore again"
            )
        return found

    def _restoring(self, record: BackupRecord) -> dict[str, Any]:
        key = record.object_key
        fields = {name: value for name, value in record.fields.items() if name not in _DROPPED}
        return {
            "leader": self._leader,
            "ttl_ms": LEAD_MILLISECONDS,
            "key": record.key,
            "kind": key.kind,
            "ns": key.namespace or CLUSTER_SCOPE,
            "name": key.name,
            "version": record.version,
            "dead": record.is_removed,
            "set": {name: value for name, value in fields.items() if isinstance(value, str)},
            "hex": {name: _hex(value) for name, value in fields.items() if not isinstance(value, str)},
        }


def _check_lead(reply: Sequence[Any]) -> Sequence[Any]:
    if reply[0] == b"other":
        raise Conflict("another restore or a relay leads the store by now: stop it, and restore again")
    return reply


def _state(state: Sequence[Any]) -> StoreState:
    numbers, hashes, losses = state
    return StoreState(
        tuple(number.decode() for number in numbers),
        tuple(_mapping(each) for each in hashes),
        tuple(loss.decode() for loss in losses),
    )


def _mapping(flat: Sequence[bytes]) -> Mapping[str, RedisValue]:
    return {name.decode(): _value(value) for name, value in _pairs(flat)}


def _pairs(flat: Sequence[bytes]) -> Iterable[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _value(value: bytes) -> RedisValue:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _hex(value: RedisValue) -> str:
    return (value.encode() if isinstance(value, str) else base64.b64decode(value["base64"])).hex()
