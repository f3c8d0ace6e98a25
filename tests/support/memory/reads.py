"""Reads of the store in memory: objects, indexes and counts; none of them writes."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.common.adapters.store_responses import (
    PAGE_MAX,
    ContinueToken,
    decode_token,
    encode_token,
    outermost,
    unschedulable_since,
)
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.garden.busy_shoots import BusyShoot, busy_shoot, is_busy
from gardenbus.common.api.keys import CLUSTER_SCOPE, ObjectKey
from gardenbus.common.ports.store import (
    BindRecord,
    Page,
    ShootStateCounts,
    StoredAmount,
    UnblockIndexes,
    UnschedulableClass,
    UnschedulableStatus,
    Usage,
)
from tests.support.memory.quotas import demand_of
from tests.support.memory.recovery import MemoryRecoveries, requested_on, unknown_places
from tests.support.memory.state import MemoryState, member_of
from tests.support.memory.stored_amounts import amount_in


class MemoryReads(MemoryRecoveries):
    """The reads of `ports.store.Store`."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state

    async def get(self, key: ObjectKey) -> StoredObject | None:
        """Read one object."""
        self.state.check_open(with_outbox=False)
        row = self.state.rows.get(key)
        return row.stored if row else None

    async def get_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """Read several objects."""
        return [await self.get(key) for key in keys]

    async def get_many_partial(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """Read several objects without what only the apiserver needs of them."""
        return [
            stored and msgspec.structs.replace(stored, last_applied=b"", report_stamps=b"", owner_setters=b"")
            for stored in await self.get_many(keys)
        ]

    async def list_page(
        self, kind: str, namespace: str | None = None, *, limit: int = 500, continue_token: str | None = None
    ) -> Page:
        """Read a page."""
        self.state.check_open(with_outbox=False)
        token = decode_token(continue_token) if continue_token else None
        limit = max(1, min(limit, PAGE_MAX))
        members = {
            member_of(key): row.stored
            for key, row in self.state.rows.items()
            if key.kind == kind and (not namespace or (key.namespace or CLUSTER_SCOPE) == namespace)
        }
        names = sorted(name for name in members if token is None or name > token.after)[:limit]
        version, unblock_index = (
            (token.version, token.unblock_index) if token else (self.state.version, self.state.unblock_objects)
        )
        return Page(
            [without_private(members[name]) for name in names],
            version,
            unblock_index,
            encode_token(ContinueToken(names[-1], version, unblock_index)) if len(names) == limit else None,
        )

    async def usage(self, since: int = 0) -> Usage:
        """Read the usage that changed after `since`."""
        self.state.check_open(with_outbox=False)
        state = self.state
        changed = {
            seed: len(state.usage[seed]) + unknown_places(state, seed)
            for seed, version in state.usage_changed.items()
            if version > since
        }
        requested = {
            seed: dict(requested_on(state, seed))
            for seed, version in state.requested_changed.items()
            if version > since
        }
        indexes = UnblockIndexes(state.unblock_objects, state.unblock_usage)
        return Usage(state.usage_version, changed, indexes, requested)

    async def _usage_since(self, since: int | None) -> Usage:
        return Usage(0, {}, UnblockIndexes(0, 0)) if since is None else await self.usage(since)

    async def demand(self, referred: ObjectKey, namespace: str = "") -> Mapping[str, int]:
        """Sum demands."""
        self.state.check_open(with_outbox=False)
        sums, _ = demand_of(self.state, referred.stored, namespace)
        return {unit: count for unit, count in sums.items() if count}

    async def shoots_on(self, seed: str) -> Sequence[ObjectKey]:
        """Read the shoots that count on a seed."""
        self.state.check_open(with_outbox=False)
        return sorted(self.state.usage[seed])

    async def named(self, kind: str, name: str) -> Sequence[ObjectKey]:
        """Read the objects of a kind with this name."""
        self.state.check_open(with_outbox=False)
        return sorted(key for key in self.state.rows if (key.kind, key.name) == (kind, name))

    async def names_with(self, kind: str, prefix: str, namespace: str | None = None, *, limit: int) -> Sequence[str]:
        """Read the names that begin with a prefix."""
        self.state.check_open(with_outbox=False)
        return outermost(
            {
                key.name
                for key in self.state.rows
                if key.kind == kind
                and key.name.startswith(prefix)
                and namespace in (None, key.namespace or CLUSTER_SCOPE)
            },
            limit,
        )

    async def dependents(self, owner_uid: str) -> Sequence[ObjectKey]:
        """Read the objects owned by a uid."""
        self.state.check_open(with_outbox=False)
        return sorted(self.state.owned[owner_uid])

    async def exists_uid(self, uid: str) -> bool:
        """Tell whether a uid is stored."""
        self.state.check_open(with_outbox=False)
        return uid in self.state.uids

    async def unschedulable_classes(
        self, scheduler_name: str, *, with_descriptors: bool = True
    ) -> Sequence[UnschedulableClass]:
        """Read the waiting classes."""
        self.state.check_open(with_outbox=False)
        unblock_index = self.state.total_unblock_index
        return [
            UnschedulableClass(
                name,
                waiting.descriptor if with_descriptors else b"",
                len(waiting.shoots),
                sum(n < unblock_index for n in waiting.shoots.values()),
            )
            for name, waiting in self.state.waiting.get(scheduler_name, {}).items()
        ]

    async def unschedulable_shoots(
        self, scheduler_name: str | None = None, *, limit: int = 1_000
    ) -> Sequence[UnschedulableStatus]:
        """Read the shoots that wait."""
        self.state.check_open(with_outbox=False)
        found = sorted(
            (unblock_index, member_of(key), key, name)
            for name, classes in self.state.waiting.items()
            if scheduler_name in (None, name)
            for waiting in classes.values()
            for key, unblock_index in waiting.shoots.items()
        )
        rows = [(self.state.rows[key], name) for _, _, key, name in found[:limit]]
        return [
            UnschedulableStatus(
                row.stored.key, name, row.unschedulable_message, unschedulable_since(row.stored.pending), row.attempts
            )
            for row, name in rows
        ]

    async def pending(self, scheduler_name: str) -> int:
        """Count the pending shoots of a scheduler."""
        self.state.check_open(with_outbox=False)
        rows = self.state.rows.values()
        return sum(row.is_pending and row.index_keys.scheduler_name == scheduler_name for row in rows)

    async def shoot_state_counts(self, limit: int) -> ShootStateCounts:
        """Count shoots by state, each by its manifest."""
        self.state.check_open(with_outbox=False)
        shoots = [row.stored for key, row in self.state.rows.items() if key.kind == "shoot"]
        rows = [_shown(each, section(each.document(), "status", "lastOperation")) for each in shoots]
        busy = [row for row in rows if is_busy(row.state, row.seed)]
        first = sorted(busy, key=lambda row: (row.began_at, row.namespace, row.name))[:limit]
        longest = [ObjectKey("shoot", row.namespace, row.name) for row in first]
        return ShootStateCounts(Counter(row.state for row in rows), len(busy), longest)

    async def stored_amounts(self) -> Mapping[str, StoredAmount]:
        """Count what each namespace holds."""
        self.state.check_open(with_outbox=False)
        return {namespace: amount_in(self.state, namespace) for namespace in {key.namespace for key in self.state.rows}}

    async def census(self) -> Mapping[str, int]:
        """Count objects by kind, pending and waiting shoots, and what the outbox still holds."""
        self.state.check_open(with_outbox=False)
        state = self.state
        classes = [each for scheduler in [*state.waiting] for each in await self.unschedulable_classes(scheduler)]
        return {
            "outbox": len(state.outbox),
            **{f"objects.{kind}": sum(key.kind == kind for key in state.rows) for kind in state.kinds},
            "shoots.pending": sum(row.is_pending for row in state.rows.values()),
            "shoots.waiting": sum(each.count for each in classes),
            "shoots.waiting_unseen": sum(each.unseen for each in classes),
        }

    async def bind_record(self, key: ObjectKey) -> BindRecord | None:
        """Tell what was remembered with the bind."""
        self.state.check_open(with_outbox=False)
        row = self.state.rows.get(key)
        return row.bind_record if row is not None else None


def without_private(stored: StoredObject) -> StoredObject:
    """An object as lists and announcements carry it: without what only the apiserver reads."""
    return msgspec.structs.replace(stored, last_applied=b"", report_stamps=b"", owner_setters=b"")


def _shown(shoot: StoredObject, operation: Document) -> BusyShoot:
    return busy_shoot(
        shoot.key.namespace,
        shoot.key.name,
        seed=shoot.parts.seed_name,
        operation=operation,
        created_at=shoot.created_at,
        deleting_at=shoot.deleting_at,
    )
