"""Writes that people ask for, always the same steps: read → merge → mutate → validate → admit → write.

A write that lost against another is worked out again on what stands now. What refuses is raised; a refusal that other
objects are the reason of comes as `Contingent`, since an earlier request may still be about to change them.
"""

import random
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple

import msgspec

from gardenbus.apiserver.decide import admission, binding, merging
from gardenbus.apiserver.decide.manifests import LARGEST_OBJECT
from gardenbus.apiserver.decide.metadata import key_of
from gardenbus.apiserver.decide.profiles import profile_key, profile_spec_of
from gardenbus.apiserver.decide.validation import validate
from gardenbus.apiserver.reconcilers.operations import operate
from gardenbus.apiserver.reconcilers.reads import Reads
from gardenbus.common.errors import BadRequest, Conflict, Forbidden, GardenbusError, InvalidResource, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Binding, BindOutcome, RequestOrigin, Store, Superseded
from gardenbus.common.resources.document import Document, StoredObject, encode, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.shoot_status import with_status_label

ATTEMPTS_AT_ONCE = 5
ATTEMPTS = 25
LONGEST_PAUSE_SECONDS = 0.25
"""Between attempts after the first few: another write takes about a millisecond."""

NO_VERSION = 2**52
"""A version that no object ever has: a write based on it tells the order of requests, and is then refused."""

SUPERSEDED = "a newer request on this object was taken meanwhile; this one changed nothing"

Outcome = Literal["created", "configured", "unchanged", "deleted", "deleting", "superseded"]


class Written(NamedTuple):
    """How a write ended; `stored` is the object as it stands (None when it is gone)."""

    key: ObjectKey
    outcome: Outcome
    stored: StoredObject | None
    warnings: tuple[str, ...] = ()


class Contingent(Exception):
    """A refusal that other objects are the reason of: it may be different once earlier requests are through."""

    def __init__(self, error: GardenbusError) -> None:
        super().__init__(error.message)
        self.error = error


class StaleVersion(Conflict):
    """The request was made for another version than the object has: for its sender to look again."""


class Missing(NotFound):
    """What the request is about is not there; a plain NotFound from the store means that it just vanished."""


ANSWERED = 2**31
"""`RequestOrigin.document` of an answered request: after every durable one that was stored before it."""

STATUS_IGNORED = "status is ignored: gardenlets and controllers report it"

Attempt = Callable[[], Awaitable[Written]]
Merge = Callable[[StoredObject | None, Document | None], Document]


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


class Writer:
    """Carries requests out. One for all requests; what a request reads is in its `Reads`."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def apply(
        self,
        given: Document,
        reads: Reads,
        *,
        user: str,
        origin: RequestOrigin | None = None,
        key: ObjectKey | None = None,
    ) -> Written:
        """Create or update by a manifest (three-way merge). Raises Terminal, StaleVersion, Contingent, Unavailable.

        `key` is the manifest's own, from who has checked its metadata already.
        """
        key = key or key_of(given)
        resource_version = _resource_version(given)
        warnings = (STATUS_IGNORED,) if given.get("status") else ()

        def merge(base: StoredObject | None, current: Document | None) -> Document:
            _check_version(key, base, resource_version)
            _check_uid(key, base, given)
            last = msgspec.json.decode(base.last_applied) if base is not None and base.last_applied else None
            return merging.apply_three_way(current, last, given)

        last_applied = merging.last_applied_of(given)
        return await self._write(_Intent(key, merge, user, _Turn(origin), last_applied, warnings), reads)

    async def patch(
        self, key: ObjectKey, patch: Document, reads: Reads, *, user: str, origin: RequestOrigin | None = None
    ) -> Written:
        """Change an object by a JSON merge patch. Raises NotFound and what `apply` raises."""
        resource_version = _resource_version(patch)
        warnings = (STATUS_IGNORED,) if patch.get("status") else ()
        accepted = {name: value for name, value in patch.items() if name != "status"}

        def merge(base: StoredObject | None, current: Document | None) -> Document:
            if base is None or current is None:
                raise Missing(f"{key} is not there")
            _check_version(key, base, resource_version)
            _check_uid(key, base, patch)
            patched = merging.merge_patch(current, accepted)
            _check_identity(current, patched)
            return patched

        return await self._write(_Intent(key, merge, user, _Turn(origin), None, warnings), reads)

    async def delete(self, key: ObjectKey, reads: Reads, *, origin: RequestOrigin | None = None) -> Written:
        """Delete an object, or mark it for deletion. Raises Missing, Contingent, Conflict, Unavailable."""
        turn = _Turn(origin)

        async def attempt() -> Written:
            base = await reads.get(key)
            if base is None:
                raise Missing(f"{key} is not there")
            left = await self._guarded_delete(base, turn.origin)
            if isinstance(left, Superseded):
                reads.forget(key)
                turn.check(left)
                return Written(key, "superseded", base, (SUPERSEDED,))
            reads.note(key, left)
            return Written(key, "deleting" if left else "deleted", left)

        return await self._insist(key, attempt, reads)

    async def bind(self, key: ObjectKey, seed_name: str, reads: Reads, *, user: str, resource_version: str) -> Written:
        """Place an unscheduled shoot on a seed. Raises NotFound, Forbidden, Conflict, Unavailable."""

        async def attempt() -> Written:
            seed_key = ObjectKey("seed", "", seed_name)
            await reads.fetch((key, seed_key))
            shoot, seed = await reads.get(key), await reads.get(seed_key)
            if shoot is None:
                raise Missing(f"{key} is not there")
            _check_version(key, shoot, resource_version)
            if shoot.parts.seed_name:
                raise StaleVersion(f"{key} is placed already, on seed {shoot.parts.seed_name}")
            if seed is None:
                raise Missing(f"{seed_key} is not there")
            wanted = await self._binding(shoot, seed, reads, user=user)
            outcome = (await self._store.bind([wanted])).outcomes[0]
            if outcome != "bound":
                raise _binding_refusal(outcome, key, seed_key)
            reads.forget(key)
            return Written(key, "configured", await reads.get(key))

        return await self._insist(key, attempt, reads, also=(ObjectKey("seed", "", seed_name),))

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
        async def attempt() -> Written:
            base = await reads.get(intent.key)
            current = base.document() if base is not None else None
            document = intent.merge(base, current)
            document, warnings = await self._admitted(document, current, reads, intent.user)
            if base is None:
                return await self._create(intent, document, warnings, reads)
            return await self._update(intent, base, current, document, warnings, reads)

        return await self._insist(intent.key, attempt, reads)

    async def _admitted(
        self, document: Document, current: Document | None, reads: Reads, user: str
    ) -> tuple[Document, tuple[str, ...]]:
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
            _check_size(admitted)
        return admitted, mutated.warnings

    async def _create(self, intent: _Intent, document: Document, warnings: tuple[str, ...], reads: Reads) -> Written:
        seed_name = section(document, "spec").get("seedName") if document["kind"] == "Shoot" else None
        seed = await reads.get(ObjectKey("seed", "", seed_name)) if seed_name else None
        try:
            stored = await self._store.create(
                document,
                origin=intent.turn.origin,
                last_applied=intent.last_applied or b"",
                gate=seed.gate if seed is not None else None,
            )
        except Forbidden as error:
            if seed is not None and await self._has_moved(seed, reads):
                raise Conflict(f"{seed.key} changed meanwhile") from error
            raise Contingent(error) from error
        warnings = (*intent.warnings, *warnings)
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
        document: Document,
        warnings: tuple[str, ...],
        reads: Reads,
    ) -> Written:
        document, bumps = operate(current, document)
        news = intent.last_applied if intent.last_applied != base.last_applied else None
        try:
            stored = await self._store.update(
                base, document, origin=intent.turn.origin, last_applied=news, bump_generation=bumps
            )
        except Forbidden as error:
            raise Contingent(error) from error
        warnings = (*intent.warnings, *warnings)
        if isinstance(stored, Superseded):
            reads.forget(intent.key)
            intent.turn.check(stored)
            return Written(intent.key, "superseded", base, (*warnings, SUPERSEDED))
        if base.is_deleting and not stored.parts.finalizers:
            reads.note(intent.key, None)
            return Written(intent.key, "deleted", None, warnings)
        reads.note(intent.key, stored)
        changed = stored.version != base.version
        return Written(intent.key, "configured" if changed else "unchanged", stored, warnings)

    async def _guarded_delete(
        self, base: StoredObject, origin: RequestOrigin | None
    ) -> StoredObject | Superseded | None:
        document = base.document()
        try:
            admission.confirm_deletion(document)
            return await self._store.delete(base, origin=origin, guards=admission.delete_guards(document))
        except Forbidden as error:
            raise Contingent(error) from error

    async def _binding(self, shoot: StoredObject, seed: StoredObject, reads: Reads, *, user: str) -> Binding:
        current = shoot.document()
        wanted = {**current, "spec": {**current["spec"], "seedName": seed.key.name}}
        facts = await reads.facts(admission.facts_needed(wanted, current))
        project = facts.projects.get(shoot.key.namespace)
        profile = facts.objects.get(key) if (key := profile_key(current)) else None
        binding.admit_binding(current, seed.document(), project=project, profile_spec=profile_spec_of(profile))
        spec = admission.mutate(wanted, current, facts, user=user).document["spec"]
        return Binding(
            namespace=shoot.key.namespace,
            name=shoot.key.name,
            uid=shoot.uid,
            generation=shoot.generation,
            seed=seed.key.name,
            gate=seed.gate,
            spec=spec if spec != wanted["spec"] else None,
        )

    async def _has_moved(self, seed: StoredObject, reads: Reads) -> bool:
        reads.forget(seed.key)
        now = await reads.get(seed.key)
        return now is None or now.gate != seed.gate

    async def _insist(
        self, key: ObjectKey, attempt: Attempt, reads: Reads, also: tuple[ObjectKey, ...] = ()
    ) -> Written:
        """Attempt until it is no conflict: at once the first times, then with short pauses."""
        for count in range(1, ATTEMPTS + 1):
            try:
                return await attempt()
            except (StaleVersion, Missing):
                raise
            except (Conflict, NotFound) as error:
                if count == ATTEMPTS:
                    raise Conflict(f"{key} is changed by others all the time; ask again") from error
                for known in (key, *also):
                    reads.forget(known)
            if count >= ATTEMPTS_AT_ONCE:
                await self._clock.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))
        raise AssertionError("the last attempt returns or raises")


def _resource_version(document: Document) -> str:
    version: object = section(document, "metadata").get("resourceVersion")
    return version if isinstance(version, str) else ""


def _check_version(key: ObjectKey, base: StoredObject | None, resource_version: str) -> None:
    if not resource_version:
        return
    if base is None:
        raise StaleVersion(
            f"metadata.resourceVersion: {key} is not there (any more); leave it out to create the object"
        )
    if str(base.version) != resource_version:
        raise StaleVersion(f"metadata.resourceVersion: {key} has version {base.version} by now, not {resource_version}")


def _check_uid(key: ObjectKey, base: StoredObject | None, given: Document) -> None:
    """Refuse what was meant for an object that is gone; what is not there may be made again, under a new uid."""
    uid: object = section(given, "metadata").get("uid")
    if base is not None and isinstance(uid, str) and uid and uid != base.uid:
        raise StaleVersion(f"metadata.uid: {key} was created anew, with the uid {base.uid}; leave it out to change it")


def _check_identity(current: Document, patched: Document) -> None:
    """Refuse a patch that would make another object of it, and keep what only the store may change."""
    for field in ("apiVersion", "kind"):
        if patched.get(field) != current[field]:
            raise BadRequest(f"{field}: a patch cannot change it")
    metadata = section(patched, "metadata")
    for field in ("name", "namespace"):
        if metadata.get(field) != current["metadata"].get(field):
            raise BadRequest(f"metadata.{field}: a patch cannot change it")
    for field in ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"):
        if field in current["metadata"]:
            metadata[field] = current["metadata"][field]
        else:
            metadata.pop(field, None)
    patched["metadata"] = metadata
    key_of(patched)


def _check_size(document: Document) -> None:
    size = len(encode({name: value for name, value in document.items() if name != "status"}))
    if size > LARGEST_OBJECT:
        raise BadRequest(f"the object would have {size} bytes as JSON, {LARGEST_OBJECT} are allowed: make it smaller")


def _binding_refusal(outcome: BindOutcome, shoot: ObjectKey, seed: ObjectKey) -> GardenbusError:
    """What the store's answer to a bind means to who asked for it; a plain Conflict is decided again."""
    match outcome:
        case "gone":
            return Missing(f"{shoot} is not there")
        case "scheduled":
            return StaleVersion(f"{shoot} has been placed meanwhile")
        case "deleting":
            return Forbidden(f"{shoot} is being deleted")
        case "seed-gone":
            return Forbidden(f"{seed} is being deleted or marked for removal")
        case "full":
            return Forbidden(f"{seed} already has the maximum number of shoots scheduled on it")
        case _:
            return Conflict(f"{shoot} or {seed} changed meanwhile")
