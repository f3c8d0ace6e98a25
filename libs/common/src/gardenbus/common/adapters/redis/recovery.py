"""Recoveries on Redis: `ports.recovery.Recoveries` over functions/recovering.lua."""

from collections.abc import Sequence
from typing import Any

from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.store_responses import OUTBOX_MAX, is_gone
from gardenbus.common.api.document import encode
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey
from gardenbus.common.ports.recovery import InventoryItem, InventoryResult, Recovery


class RedisRecoveries:
    """See `ports.recovery.Recoveries`."""

    _connection: RedisConnection

    async def recovery(self) -> Recovery | None:
        """Read it."""
        return recovery_of(await self._connection.call("recovery", {}, read_only=True))

    async def is_recovering(self, key: ObjectKey) -> bool:
        """Read the mark of a shoot."""
        return bool((await self._connection.call("is_recovering", {"key": key.stored}, read_only=True))[1])

    async def take_inventory(self, seed: str, recovery_id: str, items: Sequence[InventoryItem]) -> InventoryResult:
        """Keep what is unknown of it."""
        operation = {"seed": seed, "id": recovery_id, "items": [_item(*each) for each in items]}
        reply = await self._connection.call("inventory", operation | {"outbox_max": OUTBOX_MAX})
        return InventoryResult(reply[0] == b"ok", int(reply[1]), int(reply[2]))

    async def go_on_without(self, seeds: Sequence[str], by: str) -> Recovery | None:
        """Note who says so."""
        reply = await self._connection.call("go_on_without", {"seeds": list(seeds), "by": by})
        if reply[0] == b"gone":
            raise is_gone(ObjectKey("seed", "", reply[1].decode()))
        return recovery_of(reply)


def recovery_of(reply: Sequence[Any]) -> Recovery | None:
    """Read a reply of recovering.lua; None where there is no recovery."""
    if reply[0] not in (b"ok", b"ended"):
        return None
    fields, responses = _texts(reply[1]), _texts(reply[2])
    return Recovery(
        recovery_id=fields["id"],
        cause=fields["cause"],
        began_at=fields["at"],
        has_waited="waited" in fields,
        responses=responses,
        silent=tuple(sorted(seed.decode() for seed in reply[3])),
    )


def _texts(flat: Sequence[bytes]) -> dict[str, str]:
    texts = [each.decode() for each in flat]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _item(key: ObjectKey, uid: str) -> dict[str, str]:
    return {
        "key": key.stored,
        "kind": key.kind,
        "ns": key.namespace or CLUSTER_SCOPE,
        "name": key.name,
        "uid": uid,
        "held": encode({"uid": uid, "manifest": {}}).decode(),
    }
