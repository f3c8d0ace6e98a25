"""Writes of requests, always in the same steps: read → merge → mutate → validate → admit → write.

A write that lost against another is repeated on the new state. Rejections are raised; one that other objects cause
comes as `UnmetDependency`, since an earlier request may still be about to change them.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import msgspec

from gardenbus.apiserver.domain import merging, migration
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.controller_owned_kinds import reject_controller_owned
from gardenbus.apiserver.domain.field_validation import (
    Review,
    manifest_review,
    patch_review,
    reported_review,
    status_review,
)
from gardenbus.apiserver.domain.operations import accept_operation, is_rollout_confined
from gardenbus.apiserver.domain.plugins.plugin import VerbCheck, any_verb
from gardenbus.apiserver.domain.related_objects import RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.shoot_classes import ClassKey, class_key, manifest_text, may_be_of_class
from gardenbus.apiserver.domain.validation.entry_limits import check_entries, may_exceed
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.apiserver.metrics import OVER_BUDGET
from gardenbus.apiserver.registry.admitted_classes import AdmittedClass, AdmittedClasses, NotedVerbCheck
from gardenbus.apiserver.registry.preconditions import (
    Precondition,
    check_identity,
    check_precondition,
    check_size,
    check_uid,
    check_version,
    guards_of,
    keys_of,
    version_in,
)
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import (
    Missing,
    UnmetDependency,
    WriteResult,
    dependent,
    retry_on_conflict,
)
from gardenbus.apiserver.registry.seed_removal import annotate_seed_removal, revert_seed_removal
from gardenbus.common.api.budgets import StoredOverBudget
from gardenbus.common.api.document import UNKNOWN_LAST_APPLIED, Document, StoredObject, encode, section
from gardenbus.common.api.document_parts import without
from gardenbus.common.api.field_ownership import states_owners, updated
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.garden.shoot_status import with_status_label
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.owners import setters_after
from gardenbus.common.controller.agent_credentials import AgentCredentials
from gardenbus.common.errors import Conflict, Forbidden, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Creation, Objects, RequestOrigin, Superseded, WritePrecondition
from gardenbus.common.side_thread import beside_loop

NO_VERSION = 2**52
"""A version that no object ever has: a write based on it checks the order of requests, and then conflicts."""

SUPERSEDED = "a newer request on this object was taken meanwhile; this one changed nothing"

REQUEST_REPLY = 2**31
"""`RequestOrigin.document` of an API request: after every durable one that was stored before it."""

Merge = Callable[[StoredObject | None, Document | None], Document]

PostMerge = Callable[[Document | None, Document], Document]
"""Changes what was merged, knowing what was there before."""


class ChangeChecks(NamedTuple):
    """Checks of a requester's rights to a change (what is stored, what it shall become); they raise Forbidden."""

    change: VerbCheck = any_verb
    """Check by authorization of the manifest as it was merged."""
    verbs: VerbCheck = any_verb
    """Check for an admission plug-in of the manifest as it will be stored."""
    preconditions: Sequence[WritePrecondition] = ()
    """Conditions under which the requester may write."""


ANY_CHANGE = ChangeChecks()
"""A service's own changes, and those of a requester who may do everything."""


def _unchanged(_current: Document | None, merged: Document) -> Document:
    return merged


class _RequestOrder:
    """A request's place in the order of the bus, where API requests at one place follow each other."""

    def __init__(self, origin: RequestOrigin | None) -> None:
        self.origin = origin

    def check(self, superseded: Superseded) -> None:
        """Raise Conflict, to write again, when only an API request at the same place came before this one."""
        origin, by = self.origin, superseded.by
        if origin is None or origin.document < REQUEST_REPLY or by.document < REQUEST_REPLY:
            return
        if (origin.created, origin.sequence) == (by.created, by.sequence) and origin.document <= by.document:
            self.origin = RequestOrigin(by.created, by.sequence, by.document + 1)
            raise Conflict("another request had the same position in the stream")


class _WriteIntent(NamedTuple):
    """A write of one object, as a request wants it."""

    key: ObjectKey
    merge: Merge
    user: str
    order: "_RequestOrder"
    last_applied: bytes | None
    review: Review
    checks: ChangeChecks
    size: int
    """Bytes of what was sent."""
    condition: Precondition | None = None
    states_owners: bool = False
    """True for a server-side apply, which says itself whose fields there are."""

    def merged(self, base: StoredObject | None) -> tuple[Document | None, Document, tuple[str, ...]]:
        """The stored manifest, the one that the requester may make of it, and warnings. Raises as the checks do."""
        current = base.document() if base is not None else None
        merged = self.merge(base, current)
        if self.last_applied is None:
            check_entries(merged, current)
        if current is not None and not self.states_owners:
            merged = updated(current, merged)
        self.checks.change(current, merged)
        return current, merged, (*self.review(current), *_unknown_configuration(self, base))


class _Admitted(NamedTuple):
    """A document to be stored, warnings for its sender, conditions on other objects, and `WriteResult.notices`.

    `checked` is the document as plug-ins checked it, at the instant `at` and beside `related`.
    """

    document: Document
    checked: Document
    related: RelatedObjects
    at: datetime
    warnings: tuple[str, ...]
    preconditions: Sequence[WritePrecondition]
    notices: tuple[str, ...] = ()


class NewCreation(NamedTuple):
    """A new object that is admitted, and `WriteResult.notices` of its manifest."""

    creation: Creation
    notices: tuple[str, ...]


def _unknown_configuration(intent: _WriteIntent, base: StoredObject | None) -> tuple[str, ...]:
    """A warning, once for each object that came back from the bus: a merge cannot know what the manifest left out."""
    if intent.last_applied is None or base is None or base.last_applied != UNKNOWN_LAST_APPLIED:
        return ()
    what = f"the previously applied configuration of {intent.key}"
    return (f"{what} is unknown since the store was rebuilt: removed fields stay",)


class PreparedShoot(NamedTuple):
    """A manifest of a Shoot of which others of its class may follow: as it was given, and as it would be created."""

    given: Document
    sent: Document
    last_applied: bytes
    key: ClassKey
    kept: AdmittedClass | None
    """Its class, if that is kept."""

    @property
    def checked_key(self) -> ObjectKey | None:
        """The key of a Shoot whose metadata is valid, as that of its class is."""
        metadata = self.sent["metadata"]
        return None if self.kept is None else ObjectKey("shoot", metadata["namespace"], metadata["name"])


FollowUp = Callable[[WriteResult, ReadCache, str], Awaitable[Sequence[str]]]
"""Does what belongs to a write (the write, its reads, its user), repeatable; returns warnings."""


class Writer:
    """Carries requests out. One for all requests; what a request reads is in its `Reads`."""

    def __init__(self, store: Objects, clock: Clock, admission: Admission | None = None) -> None:
        self.admission = admission or Admission()
        self._store = store
        self._clock = clock
        self.agent_credentials = AgentCredentials(store, clock)
        self._follow_ups: list[FollowUp] = []
        self._classes = AdmittedClasses(self.admission)
        self.on_created: Callable[[StoredObject], None] = lambda _stored: None

    def add_follow_up(self, follow_up: FollowUp) -> None:
        """Add what is done after each write that is applied or patched, before the response."""
        self._follow_ups.append(follow_up)

    async def apply(  # noqa: PLR0913
        self,
        given: Document,
        reads: ReadCache,
        *,
        user: str,
        origin: RequestOrigin | None = None,
        key: ObjectKey | None = None,
        condition: Precondition | None = None,
        post_merge: PostMerge = _unchanged,
        checks: ChangeChecks = ANY_CHANGE,
        validation: FieldValidation | None = None,
    ) -> WriteResult:
        """Create or update by a manifest (three-way merge). Raises Terminal, StaleVersion, UnmetDependency.

        `key` is that of the manifest where its metadata is checked already. `post_merge` changes the merged document,
        `checks` may reject it.
        Without `validation` the manifest comes from an agent or a service: its unknown fields are kept, and bounded.
        """
        key = key or key_of(given)
        reject_controller_owned(key)
        wanted = version_in(given)
        sent, last_applied = await self._sent(given)
        review = reported_review(given) if validation is None else manifest_review(given, key, validation)

        def merge(base: StoredObject | None, current: Document | None) -> Document:
            check_version(key, base, wanted)
            check_uid(key, base, given)
            if current is None:
                return post_merge(None, merging.new_object(sent, last_applied))
            last = msgspec.json.decode(base.last_applied) if base is not None and base.last_applied else None
            return post_merge(current, merging.apply_three_way(current, last, sent))

        return await self._write(
            _WriteIntent(
                key,
                merge,
                user,
                _RequestOrder(origin),
                last_applied,
                review,
                checks,
                len(last_applied),
                condition,
                states_owners(given),
            ),
            reads,
        )

    async def new_object(  # noqa: PLR0913
        self,
        given: Document,
        reads: ReadCache,
        *,
        key: ObjectKey,
        user: str,
        validation: FieldValidation,
        checks: ChangeChecks = ANY_CHANGE,
        queries: Sequence[RelatedQuery] | None = None,
        prepared: PreparedShoot | None = None,
    ) -> NewCreation | None:
        """The object that `apply` would create; None for a shoot that names a seed, as that is a bind.

        `queries`: those of admission for the manifest as it was given, where they are known; `prepared`: what
        `prepared_shoot` made of it. Raises what `apply` raises.
        """
        if prepared is not None and (creation := await self._of_class(prepared, reads, user, checks)) is not None:
            return creation
        reject_controller_owned(key)
        check_version(key, None, version_in(given))
        sent, last_applied = await self._sent(given)
        size = len(last_applied)

        def review_and_merge() -> tuple[Document, tuple[str, ...]]:
            notices = manifest_review(given, key, validation)(None)
            merged = merging.new_object(sent, last_applied)
            checks.change(None, merged)
            return merged, notices

        merged, notices = await beside_loop(size, review_and_merge)
        is_as_given = merged is sent and merging.is_sent_whole(sent, given)
        if queries is None or not is_as_given:
            queries = await beside_loop(size, partial(self.admission.related_queries, merged, None))
        verbs = NotedVerbCheck(checks.verbs)
        noted = checks._replace(verbs=verbs)
        admitted = await self._admitted(merged, None, reads, user, noted, size=size, queries=queries)
        if section(admitted.document, "spec").get("seedName"):
            return None
        if prepared is not None and not verbs.was_called:
            concluded = (prepared.key, admitted.checked, admitted.document, admitted.related)
            self._classes.note(*concluded, queries=queries, user=user, now=admitted.at, notices=notices)
        creation = Creation(
            admitted.document,
            last_applied=last_applied,
            owner_setters=setters_after(None, None, admitted.document, user),
            preconditions=admitted.preconditions,
        )
        return NewCreation(creation, notices)

    def prepared_shoot(
        self, given: Document, *, user: str, validation: FieldValidation, spec: bytes | None = None
    ) -> PreparedShoot | None:
        """A new Shoot and its class, for `new_object`; None where it has none. `spec`: the spec as JSON, if at hand."""
        if not may_be_of_class(given):
            return None
        sent = merging.without_system_fields(given)
        text = manifest_text(sent, spec)
        key = class_key(given, sent, text, user=user, validation=validation)
        return None if key is None else PreparedShoot(given, sent, text.whole, key, self._classes.of(key))

    async def _of_class(
        self, prepared: PreparedShoot, reads: ReadCache, user: str, checks: ChangeChecks
    ) -> NewCreation | None:
        """The object of a class that holds now; None where it has to be admitted by itself."""
        kept = self._classes.of(prepared.key)
        if kept is None:
            return None
        related = await reads.related(kept.queries)
        with dependent():
            admitted = self._classes.admitted(kept, prepared.sent, related, user=user, now=self._clock.now())
        if admitted is None:
            return None
        checks.change(None, prepared.sent)
        creation = Creation(
            admitted.document,
            last_applied=prepared.last_applied,
            preconditions=(*admitted.preconditions, *checks.preconditions),
            like=admitted.like,
        )
        return NewCreation(creation, admitted.notices)

    async def follow_up(self, written: WriteResult, reads: ReadCache, user: str) -> Sequence[str]:
        """Do what belongs to a write; returns warnings."""
        if written.outcome == "created" and written.stored is not None:
            self.on_created(written.stored)
        return [warning for follow_up in self._follow_ups for warning in await follow_up(written, reads, user)]

    async def patch(  # noqa: PLR0913
        self,
        key: ObjectKey,
        patch: Document,
        reads: ReadCache,
        *,
        user: str,
        origin: RequestOrigin | None = None,
        condition: Precondition | None = None,
        checks: ChangeChecks = ANY_CHANGE,
        validation: FieldValidation | None = None,
    ) -> WriteResult:
        """Change an object by a JSON merge patch. Raises NotFound and what `apply` raises."""
        reject_controller_owned(key)
        wanted = version_in(patch)
        review = status_review(patch) if validation is None else patch_review(patch, key, validation)
        accepted = without(patch, "status")

        def merge(base: StoredObject | None, current: Document | None) -> Document:
            if base is None or current is None:
                raise Missing(f"{key} not found")
            check_version(key, base, wanted)
            check_uid(key, base, patch)
            patched = merging.merge_patch(current, accepted)
            check_identity(current, patched)
            return patched

        return await self._write(
            _WriteIntent(
                key,
                merge,
                user,
                _RequestOrder(origin),
                None,
                review,
                checks,
                len(encode(patch)),
                condition,
                states_owners(patch),
            ),
            reads,
        )

    async def delete(
        self,
        key: ObjectKey,
        reads: ReadCache,
        *,
        user: str | None = None,
        origin: RequestOrigin | None = None,
        condition: Precondition | None = None,
    ) -> WriteResult:
        """Delete an object, or request its deletion; without `user` for the system itself.

        Raises Missing, Forbidden, UnmetDependency, Conflict.
        """
        reject_controller_owned(key)
        order = _RequestOrder(origin)

        async def attempt() -> WriteResult:
            await check_precondition(condition, reads)
            base = await reads.get(key)
            if base is None:
                await self._store.confirm_reads()
                raise Missing(f"{key} not found")
            remaining = await self._guarded_delete(base, reads, user, order.origin, condition)
            if isinstance(remaining, Superseded):
                reads.invalidate(key)
                order.check(remaining)
                return WriteResult(key, "superseded", base, (SUPERSEDED,))
            reads.record(key, remaining)
            return WriteResult(key, "deleting" if remaining else "deleted", remaining)

        try:
            written = await retry_on_conflict(attempt, (key, *keys_of(condition)), reads, self._clock)
        except (UnmetDependency, Conflict):
            await self._revert_seed_removal(key)
            raise
        if written.outcome == "superseded":
            await self._revert_seed_removal(key)
        return written

    async def _revert_seed_removal(self, key: ObjectKey) -> None:
        """Revert what precedes a deletion."""
        if key.kind == "managedseed":
            await revert_seed_removal(key, self._store)

    async def is_superseded(self, key: ObjectKey, origin: RequestOrigin, reads: ReadCache) -> bool:
        """True when this durable request, or one after it, was carried out on the object already. Writes nothing."""
        reads.invalidate(key)
        base = await reads.get(key)
        if base is None:
            return False
        unmatched = msgspec.structs.replace(base, version=NO_VERSION)
        try:
            return isinstance(await self._store.update(unmatched, base.document(), origin=origin), Superseded)
        except (Conflict, NotFound):
            return False

    # ------------------------------------------------------------------------------------------ steps

    async def _write(self, intent: _WriteIntent, reads: ReadCache) -> WriteResult:
        depends_on = [intent.key, *keys_of(intent.condition)]

        async def attempt() -> WriteResult:
            await check_precondition(intent.condition, reads)
            base = await reads.get(intent.key)
            size = intent.size + (base.size if base is not None else 0)
            current, merged, notices = await beside_loop(size, partial(intent.merged, base))
            admitted = await self._admitted(merged, current, reads, intent.user, intent.checks, size=size)
            admitted = admitted._replace(warnings=(*notices, *admitted.warnings), notices=notices)
            depends_on.extend(
                ObjectKey.from_stored(guard.name) for guard in admitted.preconditions if guard.kind == "version"
            )
            if base is None:
                return await self._create(intent, admitted, reads)
            return await self._update(intent, base, current, admitted, reads)

        try:
            written = await retry_on_conflict(attempt, depends_on, reads, self._clock)
        except UnmetDependency as unmet:
            if isinstance(unmet.error, StoredOverBudget):
                OVER_BUDGET.labels(unmet.error.limit).inc()
            raise
        warnings = await self.follow_up(written, reads, intent.user)
        return written._replace(warnings=(*written.warnings, *warnings)) if warnings else written

    async def _sent(self, given: Document) -> tuple[Document, bytes]:
        """A manifest without what the system fills in, and as JSON. Raises InvalidResource for too many entries."""
        sent = merging.without_system_fields(given)
        last_applied = encode(sent)
        if may_exceed(last_applied):
            await beside_loop(len(last_applied), partial(check_entries, sent))
        return sent, last_applied

    async def _admitted(  # noqa: PLR0913
        self,
        document: Document,
        current: Document | None,
        reads: ReadCache,
        user: str,
        checks: ChangeChecks,
        *,
        size: int,
        queries: Sequence[RelatedQuery] | None = None,
    ) -> _Admitted:
        """Admit a document of so many bytes, with what is stored of it."""
        admission, now = self.admission, self._clock.now()
        if queries is None:
            queries = await beside_loop(size, partial(admission.related_queries, document, current))
        related = await reads.related(queries)

        def admit() -> _Admitted:
            with dependent():
                mutated = admission.mutate(document, current, related, user=user, now=now)
            validate(mutated.document, current)
            with dependent():
                admission.admit(mutated.document, current, related, user=user, now=now, check_verbs=checks.verbs)
            admitted = with_status_label(mutated.document) if mutated.document["kind"] == "Shoot" else mutated.document
            if current is not None:  # a new object was measured when it was read
                check_size(admitted)
            guards = admission.write_guards(admitted, current, related, user=user)
            return _Admitted(
                admitted, mutated.document, related, now, mutated.warnings, (*guards, *checks.preconditions)
            )

        return await beside_loop(size, admit)

    async def _create(self, intent: _WriteIntent, admitted: _Admitted, reads: ReadCache) -> WriteResult:
        document = admitted.document
        seed_name = section(document, "spec").get("seedName") if document["kind"] == "Shoot" else None
        seed = await reads.get(ObjectKey("seed", "", seed_name)) if seed_name else None
        try:
            stored = await self._store.create(
                document,
                origin=intent.order.origin,
                last_applied=intent.last_applied or b"",
                owner_setters=setters_after(None, None, document, intent.user),
                scheduling_generation=seed.scheduling_generation if seed is not None else None,
                preconditions=(*guards_of(intent.condition), *admitted.preconditions),
            )
        except Forbidden as error:
            if seed is not None and await self._is_stale(seed, reads):
                raise Conflict(f"{seed.key} changed meanwhile") from error
            raise UnmetDependency(error) from error
        warnings, notices = admitted.warnings, admitted.notices
        if isinstance(stored, Superseded):
            intent.order.check(stored)
            return WriteResult(intent.key, "superseded", None, (*warnings, SUPERSEDED))
        reads.record(intent.key, stored)
        return WriteResult(intent.key, "created", stored, warnings, notices)

    async def _update(
        self, intent: _WriteIntent, base: StoredObject, current: Document | None, admitted: _Admitted, reads: ReadCache
    ) -> WriteResult:
        document, bumps = accept_operation(current, admitted.document)
        new_last_applied = intent.last_applied if intent.last_applied != base.last_applied else None
        setters = setters_after(base.owner_setters, current, document, intent.user)
        if base.is_deleting and not section(document, "metadata").get("finalizers"):
            await self.agent_credentials.end_with(base)
        with dependent((Forbidden,)):
            stored = await self._store.update(
                base,
                document,
                origin=intent.order.origin,
                last_applied=new_last_applied,
                owner_setters=setters if setters != base.owner_setters else None,
                bump_generation=bumps,
                keep_generation=is_rollout_confined(current, document),
                preconditions=(*guards_of(intent.condition), *admitted.preconditions),
            )
        warnings, notices = admitted.warnings, admitted.notices
        if isinstance(stored, Superseded):
            reads.invalidate(intent.key)
            intent.order.check(stored)
            return WriteResult(intent.key, "superseded", base, (*warnings, SUPERSEDED))
        if base.is_deleting and not stored.parts.finalizers:
            reads.record(intent.key, None)
            return WriteResult(intent.key, "deleted", None, warnings)
        reads.record(intent.key, stored)
        changed = (stored.version, stored.generation) != (base.version, base.generation) or stored.parts != base.parts
        return WriteResult(intent.key, "configured" if changed else "unchanged", stored, warnings, notices)

    async def _guarded_delete(
        self,
        base: StoredObject,
        reads: ReadCache,
        user: str | None,
        origin: RequestOrigin | None,
        condition: Precondition | None,
    ) -> StoredObject | Superseded | None:
        document = await beside_loop(base.size, base.document)
        related = await reads.related(self.admission.deletion_queries(document))
        with dependent((Forbidden,)):
            self.admission.admit_deletion(document, related, user=user)
            migration.admit_deletion(document)
            preconditions = (*self.admission.deletion_guards(document), *guards_of(condition))
            preconditions = (*preconditions, *await annotate_seed_removal(base, self._store))
            if not base.parts.finalizers:
                await self.agent_credentials.end_with(base)
            return await self._store.delete(base, origin=origin, preconditions=preconditions)

    async def _is_stale(self, seed: StoredObject, reads: ReadCache) -> bool:
        reads.invalidate(seed.key)
        now = await reads.get(seed.key)
        return now is None or now.scheduling_generation != seed.scheduling_generation
