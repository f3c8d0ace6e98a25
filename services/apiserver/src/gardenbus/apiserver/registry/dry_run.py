"""Dry runs: a request is handled as always, on a store that checks every write and makes none.

A request with the header `Gardenbus-Dry-Run: true` (or `explain`, of an `apply`: then the response also says what each
admission plug-in did) gets the object as it would be stored, with its present version (a
new one: version 0 and no uid), or the error. Rules of the store (versions, capacity, claims, references to an object)
are checked by the store, in one call without writing. Documents of one message see each other.
"""

from collections.abc import Mapping, Sequence

import msgspec

from gardenbus.common.api.changes import change_of, creation_of
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.shoot_groups import GroupCounts
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.bus import Headers
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Objects, Page, RequestOrigin, Store, WritePrecondition

EXPLAIN = "explain"


def is_dry_run(headers: Headers) -> bool:
    """True when a request must write nothing. Raises BadRequest for a header other than true, explain and false."""
    text = headers.get(Header.DRY_RUN, "")
    if text not in ("", "true", "false", EXPLAIN):
        raise BadRequest(f"{Header.DRY_RUN}: must be true or false, or {EXPLAIN}, not {text[:40]!r}")
    return text in ("true", EXPLAIN)


def explains(headers: Headers) -> bool:
    """True when the response to a dry run shall say what each admission plug-in did."""
    return headers.get(Header.DRY_RUN) == EXPLAIN


def reject_durable_dry_run(headers: Headers) -> None:
    """Reject a durable dry run: it has no response, and must not be written."""
    if Header.DRY_RUN in headers and is_dry_run(headers):
        raise BadRequest(f"{Header.DRY_RUN}: a durable request has no response: send it below garden.api.")


class DryRunStore(Objects):
    """The store of one dry run: reads go to the real one, and writes are worked out and checked there."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._written: set[ObjectKey] = set()

    # ------------------------------------------------------------------------------------------ reads

    async def get(self, key: ObjectKey) -> StoredObject | None:
        """Read one object."""
        return await self._store.get(key)

    async def get_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """Read several objects."""
        return await self._store.get_many(keys)

    async def list_page(
        self, kind: str, namespace: str | None = None, *, limit: int = 500, continue_token: str | None = None
    ) -> Page:
        """Read a page."""
        return await self._store.list_page(kind, namespace, limit=limit, continue_token=continue_token)

    async def demand(self, referred: ObjectKey, namespace: str = "") -> Mapping[str, int]:
        """Sum demands."""
        return await self._store.demand(referred, namespace)

    async def group_counts(self, namespace: str, groups: Sequence[str]) -> Mapping[str, GroupCounts]:
        """Read counts of groups."""
        return await self._store.group_counts(namespace, groups)

    async def shoots_on(self, seed: str) -> Sequence[ObjectKey]:
        """Read the shoots that count on a seed."""
        return await self._store.shoots_on(seed)

    # ------------------------------------------------------------------------------------------ writes

    async def create(
        self,
        document: Document,
        *,
        origin: RequestOrigin | None = None,  # noqa: ARG002  a dry run has no place in the order of the bus
        last_applied: bytes = b"",
        owner_setters: bytes = b"",
        scheduling_generation: int | None = None,
        preconditions: Sequence[WritePrecondition] = (),
    ) -> StoredObject:
        """Work out a new object. Raises what creating it would."""
        metadata = document["metadata"]
        made = StoredObject(
            key=ObjectKey(document["kind"].lower(), metadata.get("namespace") or "", metadata["name"]),
            parts=creation_of(document).parts,
            uid="",
            version=0,
            generation=1,
            created_at=timestamp(self._clock.now()),
            last_applied=last_applied,
            owner_setters=owner_setters,
        )
        await self._check(
            made.key, None, document, scheduling_generation=scheduling_generation, preconditions=preconditions
        )
        return made

    async def update(  # noqa: PLR0913  all that a write may depend on
        self,
        base: StoredObject,
        document: Document,
        *,
        origin: RequestOrigin | None = None,  # noqa: ARG002
        last_applied: bytes | None = None,
        report_stamps: bytes | None = None,  # noqa: ARG002  reports have no dry run
        owner_setters: bytes | None = None,
        bump_generation: bool = False,
        keep_generation: bool = False,
        scheduling_generation: int | None = None,
        preconditions: Sequence[WritePrecondition] = (),
    ) -> StoredObject:
        """Work out what would replace an object. Raises what replacing it would."""
        change = change_of(base, document)
        await self._check(
            base.key, base, document, scheduling_generation=scheduling_generation, preconditions=preconditions
        )
        return msgspec.structs.replace(
            base,
            parts=change.parts,
            generation=base.generation + (bump_generation or (change.spec and not keep_generation)),
            last_applied=base.last_applied if last_applied is None else last_applied,
            owner_setters=base.owner_setters if owner_setters is None else owner_setters,
        )

    async def delete(
        self,
        base: StoredObject,
        *,
        origin: RequestOrigin | None = None,  # noqa: ARG002
        preconditions: Sequence[WritePrecondition] = (),
    ) -> StoredObject | None:
        """Work out what a deletion would leave. Raises what deleting would."""
        await self._check(base.key, base, None, scheduling_generation=None, preconditions=preconditions)
        if not base.parts.finalizers:
            return None
        if base.is_deleting:
            return base
        now = timestamp(self._clock.now())
        return msgspec.structs.replace(base, deleting_at=now, generation=base.generation + 1)

    async def _check(
        self,
        key: ObjectKey,
        base: StoredObject | None,
        document: Document | None,
        *,
        scheduling_generation: int | None,
        preconditions: Sequence[WritePrecondition],
    ) -> None:
        """Have the store check a write, without guards on objects that only this dry run has written.

        An object that is there is checked at each of its writes (a deletion may follow its confirmation), one that only
        this dry run has made at its first.
        """
        if key not in self._written or (base is not None and base.version):
            own_writes = {written.stored for written in self._written}
            checked = [guard for guard in preconditions if guard.kind != "version" or guard.name not in own_writes]
            await self._store.dry_run(
                key, base, document, scheduling_generation=scheduling_generation, preconditions=checked
            )
        self._written.add(key)
