"""Writes that people ask for, always the same steps: read → merge → mutate → validate → admit → write.

A write that lost against another is worked out again on what stands now. What refuses is raised; a refusal that other
objects are the reason of comes as `Contingent`, since an earlier request may still be about to change them.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import msgspec

from gardenbus.apiserver.decide import admission, merging, migration
from gardenbus.apiserver.decide.metadata import key_of
from gardenbus.apiserver.decide.service_objects import refuse_service_object
from gardenbus.apiserver.decide.validation import validate
from gardenbus.apiserver.reconcilers.attempts import Contingent, Missing, Written, insist
from gardenbus.apiserver.reconcilers.leaving_seeds import mark_seed_of, take_mark_back
from gardenbus.apiserver.reconcilers.operations import operate
from gardenbus.apiserver.reconcilers.preconditions import (
    Condition,
    check_condition,
    check_identity,
    check_size,
    check_uid,
    check_version,
    guards_of,
    keys_of,
    version_in,
)
from gardenbus.apiserver.reconcilers.reads import Reads
from gardenbus.common.errors import Conflict, Forbidden, InvalidResource, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Creation, Guard, Objects, RequestOrigin, Superseded
from gardenbus.common.resources.document import Document, StoredObject, encode, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.shoot_status import with_status_label

NO_VERSION = 2**52
"""A version that no object ever has: a write based on it tells the order of requests, and is then refused."""

SUPERSEDED = "a newer request on this object was taken meanwhile; this one changed nothing"

ANSWERED = 2**31
"""`RequestOrigin.document` of an answered request: after every durable one that was stored before it."""

STATUS_IGNORED = "status is ignored: gardenlets and controllers report it"

Merge = Callable[[StoredObject | None, Document | None], Document]

Settle = Callable[[Document | None, Document], Document]
"""Changes what was merged, knowing what was there before."""


def _as_it_is(_current: Document | None, merged: Document) -> Document:
    return merged


class _Turn:
    """A request's place in the order of the bus. Answered requests at one place follow each other as they are taken."""

    def __init__(self, origin: RequestOrigin | None) -> None:
        self.origin = origin

    def check(self, superseded: Superseded) -> None:
        """Raise Conflict, to write again, when only an answered request at the same place stood before this one."""
        origin, by = self.origin, superseded.by
        if origin is None or origin.document < ANSWERED or by.document < ANSWERED:
            return
        if (origin.created, origin.sequence) == (by.created, by.sequence) and origin.document <= by.document:
            self.origin = RequestOrigin(by.created, by.sequence, by.document + 1)
            raise Conflict("another answered request stood at the same place of the order")


class _Intent(NamedTuple):
    """What a request wants of one object."""

    key: ObjectKey
    merge: Merge
    user: str
    turn: "_Turn"
    last_applied: bytes | None
    warnings: tuple[str, ...]
    condition: Condition | None = None


class _Admitted(NamedTuple):
    """A document as it shall be stored, what its sender should know, and what must still hold of other objects."""

    document: Document
    warnings: tuple[str, ...]
    guards: Sequence[Guard]


Follow = Callable[[Written, Reads, str], Awaitable[Sequence[str]]]
"""Does what a write brings with it (the write, its reads, its user), as often as it is asked; answers warnings."""


class Writer:
    """Carries requests out. One for all requests; what a request reads is in its `Reads`."""

    def __init__(self, store: Objects, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._followers: list[Follow] = []

    def followed_by(self, follow: Follow) -> None:
        """Have something done after each write that is applied or patched, before it is answered."""
        self._followers.append(follow)

    async def apply(  # noqa: PLR0913
        self,
        given: Document,
        reads: Reads,
        *,
        user: str,
        origin: RequestOrigin | None = None,
        key: ObjectKey | None = None,
        condition: Condition | None = None,
        settle: Settle = _as_it_is,
    ) -> Written:
        """Create or update by a manifest (three-way merge). Raises Terminal, StaleVersion, Contingent, Unavailable.

        `key` is the manifest's own, from who has checked its metadata already. `settle` has the last word on what is
        merged.
        """
        key = key or key_of(given)
        refuse_service_object(key)
        wanted = version_in(given)
        warnings = (STATUS_IGNORED,) if given.get("status") else ()

        sent = merging.without_system_fields(given)
        last_applied = encode(sent)

        def merge(base: StoredObject | None, current: Document | None) -> Document:
            check_version(key, base, wanted)
            check_uid(key, base, given)
            if current is None:
                return settle(None, merging.new_object(sent, last_applied))
            last = msgspec.json.decode(base.last_applied) if base is not None and base.last_applied else None
            return settle(current, merging.apply_three_way(current, last, sent))

        return await self._write(_Intent(key, merge, user, _Turn(origin), last_applied, warnings, condition), reads)

    async def new_object(self, given: Document, reads: Reads, *, key: ObjectKey, user: str) -> Creation | None:
        """What `apply` would store where nothing is; None when the write depends on more than the object itself.

        Raises what `apply` raises.
        """
        refuse_service_object(key)
        check_version(key, None, version_in(given))
        sent = merging.without_system_fields(given)
        last_applied = encode(sent)
        admitted = await self._admitted(merging.new_object(sent, last_applied), None, reads, user)
        if admitted.guards or section(admitted.document, "spec").get("seedName"):
            return None
        return Creation(admitted.document, last_applied=last_applied)

    async def follow(self, written: Written, reads: Reads, user: str) -> Sequence[str]:
        """Do what a write brings with it; answer warnings."""
        return [warning for follow in self._followers for warning in await follow(written, reads, user)]

    async def patch(
        self,
        key: ObjectKey,
        patch: Document,
        reads: Reads,
        *,
        user: str,
        origin: RequestOrigin | None = None,
        condition: Condition | None = None,
    ) -> Written:
        """Change an object by a JSON merge patch. Raises NotFound and what `apply` raises."""
        refuse_service_object(key)
        wanted = version_in(patch)
        warnings = (STATUS_IGNORED,) if patch.get("status") else ()
        accepted = {name: value for name, value in patch.items() if name != "status"}

        def merge(base: StoredObject | None, current: Document | None) -> Document:
            if base is None or current is None:
                raise Missing(f"{key} is not there")
            check_version(key, base, wanted)
            check_uid(key, base, patch)
            patched = merging.merge_patch(current, accepted)
            check_identity(current, patched)
            return patched

        return await self._write(_Intent(key, merge, user, _Turn(origin), None, warnings, condition), reads)

    async def delete(
        self,
        key: ObjectKey,
        reads: Reads,
        *,
        origin: RequestOrigin | None = None,
        condition: Condition | None = None,
    ) -> Written:
        """Delete an object, or mark it for deletion. Raises Missing, Forbidden, Contingent, Conflict, Unavailable."""
        refuse_service_object(key)
        turn = _Turn(origin)

        async def attempt() -> Written:
            await check_condition(condition, reads)
            base = await reads.get(key)
            if base is None:
                raise Missing(f"{key} is not there")
            left = await self._guarded_delete(base, turn.origin, condition)
            if isinstance(left, Superseded):
                reads.forget(key)
                turn.check(left)
                return Written(key, "superseded", base, (SUPERSEDED,))
            reads.note(key, left)
            return Written(key, "deleting" if left else "deleted", left)

        try:
            written = await insist(attempt, (key, *keys_of(condition)), reads, self._clock)
        except (Contingent, Conflict):
            await self._stay(key)
            raise
        if written.outcome == "superseded":
            await self._stay(key)
        return written

    async def _stay(self, key: ObjectKey) -> None:
        """Undo what goes ahead of a deletion."""
        if key.kind == "managedseed":
            await take_mark_back(key, self._store)

    async def is_superseded(self, key: ObjectKey, origin: RequestOrigin, reads: Reads) -> bool:
        """Whether this durable request, or one after it, was carried out on the object already. Writes nothing."""
        reads.forget(key)
        base = await reads.get(key)
        if base is None:
            return False
        nobodys = msgspec.structs.replace(base, version=NO_VERSION)
        try:
            return isinstance(await self._store.update(nobodys, base.document(), origin=origin), Superseded)
        except (Conflict, NotFound):
            return False

    # ------------------------------------------------------------------------------------------ steps

    async def _write(self, intent: _Intent, reads: Reads) -> Written:
        depends_on = [intent.key, *keys_of(intent.condition)]

        async def attempt() -> Written:
            await check_condition(intent.condition, reads)
            base = await reads.get(intent.key)
            current = base.document() if base is not None else None
            admitted = await self._admitted(intent.merge(base, current), current, reads, intent.user)
            depends_on.extend(ObjectKey.from_stored(guard.name) for guard in admitted.guards)
            if base is None:
                return await self._create(intent, admitted, reads)
            return await self._update(intent, base, current, admitted, reads)

        written = await insist(attempt, depends_on, reads, self._clock)
        warnings = await self.follow(written, reads, intent.user)
        return written._replace(warnings=(*written.warnings, *warnings)) if warnings else written

    async def _admitted(self, document: Document, current: Document | None, reads: Reads, user: str) -> _Admitted:
        facts = await reads.facts(admission.facts_needed(document, current))
        try:
            mutated = admission.mutate(document, current, facts, user=user)
        except (Forbidden, InvalidResource, NotFound) as error:
            raise Contingent(error) from error
        validate(mutated.document, current)
        try:
            admission.admit(mutated.document, current, facts)
        except (Forbidden, InvalidResource, NotFound) as error:
            raise Contingent(error) from error
        admitted = with_status_label(mutated.document) if mutated.document["kind"] == "Shoot" else mutated.document
        if current is not None:  # what comes whole was measured when it was read
            check_size(admitted)
        return _Admitted(admitted, mutated.warnings, admission.write_guards(admitted, current, facts))

    async def _create(self, intent: _Intent, admitted: _Admitted, reads: Reads) -> Written:
        document = admitted.document
        seed_name = section(document, "spec").get("seedName") if document["kind"] == "Shoot" else None
        seed = await reads.get(ObjectKey("seed", "", seed_name)) if seed_name else None
        try:
            stored = await self._store.create(
                document,
                origin=intent.turn.origin,
                last_applied=intent.last_applied or b"",
                gate=seed.gate if seed is not None else None,
                guards=(*guards_of(intent.condition), *admitted.guards),
            )
        except Forbidden as error:
            if seed is not None and await self._has_moved(seed, reads):
                raise Conflict(f"{seed.key} changed meanwhile") from error
            raise Contingent(error) from error
        warnings = (*intent.warnings, *admitted.warnings)
        if isinstance(stored, Superseded):
            intent.turn.check(stored)
            return Written(intent.key, "superseded", None, (*warnings, SUPERSEDED))
        reads.note(intent.key, stored)
        return Written(intent.key, "created", stored, warnings)

    async def _update(
        self,
        intent: _Intent,
        base: StoredObject,
        current: Document | None,
        admitted: _Admitted,
        reads: Reads,
    ) -> Written:
        document, bumps = operate(current, admitted.document)
        news = intent.last_applied if intent.last_applied != base.last_applied else None
        try:
            stored = await self._store.update(
                base,
                document,
                origin=intent.turn.origin,
                last_applied=news,
                bump_generation=bumps,
                guards=(*guards_of(intent.condition), *admitted.guards),
            )
        except Forbidden as error:
            raise Contingent(error) from error
        warnings = (*intent.warnings, *admitted.warnings)
        if isinstance(stored, Superseded):
            reads.forget(intent.key)
            intent.turn.check(stored)
            return Written(intent.key, "superseded", base, (*warnings, SUPERSEDED))
        if base.is_deleting and not stored.parts.finalizers:
            reads.note(intent.key, None)
            return Written(intent.key, "deleted", None, warnings)
        reads.note(intent.key, stored)
        changed = (stored.version, stored.generation) != (base.version, base.generation) or stored.parts != base.parts
        return Written(intent.key, "configured" if changed else "unchanged", stored, warnings)

    async def _guarded_delete(
        self, base: StoredObject, origin: RequestOrigin | None, condition: Condition | None
    ) -> StoredObject | Superseded | None:
        document = base.document()
        try:
            admission.confirm_deletion(document)
            migration.admit_deletion(document)
            guards = (*admission.delete_guards(document), *guards_of(condition))
            guards = (*guards, *await mark_seed_of(base, self._store))
            return await self._store.delete(base, origin=origin, guards=guards)
        except Forbidden as error:
            raise Contingent(error) from error

    async def _has_moved(self, seed: StoredObject, reads: Reads) -> bool:
        reads.forget(seed.key)
        now = await reads.get(seed.key)
        return now is None or now.gate != seed.gate
