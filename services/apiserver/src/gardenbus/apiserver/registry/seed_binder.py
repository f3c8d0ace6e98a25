"""Binds a shoot to a seed by name: assigns one without seed, migrates one that has a seed.

The courses of a bind are in domain/migration.py. Rules about the seed at that moment (capacity, deletion, removal mark,
circularity) are checked by the store in the write itself.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import structlog

from gardenbus.apiserver import metrics
from gardenbus.apiserver.domain import bind_admission, group_admission, migration
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.cloud_profiles import profile_key
from gardenbus.apiserver.domain.plugins.bastion import shoot_of_bastion
from gardenbus.apiserver.domain.related_objects import ObjectQuery, ProjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.registry.preconditions import (
    Precondition,
    check_precondition,
    check_version,
    guards_of,
    keys_of,
)
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import Missing, StaleVersion, WriteResult, retry_on_conflict
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.profile_parts import profile_spec_of
from gardenbus.common.api.garden.scheduling_requirements import resolved_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.request_bodies import BindRequest
from gardenbus.common.controller.listing import list_all
from gardenbus.common.errors import Conflict, Forbidden, GardenbusError, Unavailable
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import BindOutcome, EventRecord, SeedBinding, SeenGroups, Store, WritePrecondition

_log = structlog.stdlib.get_logger()

REPORTER = "apiserver"

_EVENTS: Mapping[str, tuple[Literal["Normal", "Warning"], str, str]] = {
    "place": ("Normal", "SchedulingSuccessful", 'Scheduled to seed "{to}"'),
    "move": ("Normal", "MigrationRequested", '{user} moves the control plane from seed "{before}" to "{to}"'),
    "back": ("Normal", "MigrationTakenBack", '{user} has it stay on seed "{to}" instead of moving to "{bound}"'),
    "restore": (
        "Warning",
        "RestorationForced",
        '{user} has it restored on seed "{to}" from its ShootState, without seed "{before}"',
    ),
}
"""Type, reason and message of the Event that is recorded of each course."""


class _BindContext(NamedTuple):
    """Request, shoot and seed of a bind, as they were read."""

    request: BindRequest
    shoot: StoredObject
    seed: StoredObject
    user: str
    condition: Precondition | None


class SeedBinder:
    """Carries binds out. One for all requests."""

    def __init__(self, store: Store, clock: Clock, admission: Admission | None = None) -> None:
        self._admission = admission or Admission()
        self._store = store
        self._clock = clock

    async def bind(
        self, request: BindRequest, reads: ReadCache, *, user: str, condition: Precondition | None = None
    ) -> WriteResult:
        """Place a shoot, or have it moved. Raises NotFound, Forbidden, Conflict, Unavailable."""

        async def attempt() -> WriteResult:
            await reads.fetch((request.shoot, request.seed_key, *keys_of(condition)))
            await check_precondition(condition, reads)
            shoot, seed = await reads.get(request.shoot), await reads.get(request.seed_key)
            if shoot is None:
                raise Missing(f"{request.shoot} not found")
            check_version(request.shoot, shoot, request.resource_version)
            if seed is None:
                raise Missing(f"{request.seed_key} not found")
            context = _BindContext(request, shoot, seed, user, condition)
            return await (self._move(context, reads) if shoot.parts.seed_name else self._place(context, reads))

        state = ObjectKey("shootstate", request.namespace, request.name)
        return await retry_on_conflict(
            attempt, (request.shoot, request.seed_key, state, *keys_of(condition)), reads, self._clock
        )

    # ------------------------------------------------------------------------------------------ the first seed

    async def _place(self, context: _BindContext, reads: ReadCache) -> WriteResult:
        if context.request.force:
            raise Forbidden(f"{context.shoot.key} has no seed yet: bind it without force")
        spec, related = await self._spec_defaulted_on_bind(context, reads)
        groups = await self._admit_groups(context, related)
        if context.condition is not None:
            if context.shoot.is_deleting:
                raise Forbidden(f"{context.shoot.key} is being deleted")
            current = context.shoot.document()
            placed = migration.moved({**current, "spec": spec or current["spec"]}, context.seed.key.name)
            return await self._write(context, placed, "place", reads, *_guard_on(groups, context))
        wanted = SeedBinding(
            namespace=context.shoot.key.namespace,
            name=context.shoot.key.name,
            uid=context.shoot.uid,
            generation=context.shoot.generation,
            seed=context.seed.key.name,
            scheduling_generation=context.seed.scheduling_generation,
            spec=spec,
            groups=groups,
        )
        outcome = (await self._store.bind([wanted])).outcomes[0]
        if outcome == "full" and resolved_of(context.shoot.document()).requests:
            raise Forbidden(_NO_ROOM.format(shoot=context.shoot.key, seed=context.seed.key))
        if outcome != "bound":
            raise _bind_error(outcome, context.shoot.key, context.seed.key)
        reads.invalidate(context.shoot.key)
        return WriteResult(context.shoot.key, "configured", await reads.get(context.shoot.key))

    async def _admit_groups(self, context: _BindContext, related: RelatedObjects) -> SeenGroups:
        """The groups that a bind is based on. Raises Forbidden where a rule between shoots keeps the shoot off."""
        current, namespace = context.shoot.document(), context.shoot.key.namespace
        rules = resolved_of(current).group_rules
        if not rules.concerned:
            return {}
        counts = await self._store.group_counts(namespace, rules.concerned)
        profile = related.objects.get(key) if (key := profile_key(current)) else None
        group_admission.admit_groups(
            current,
            context.seed.key.name,
            [stored.document() for stored in await list_all(self._store, "seed")],
            counts=counts,
            usage=(await self._store.usage()).seeds,
            project=related.projects.get(namespace),
            profile_spec=profile_spec_of(profile),
        )
        return {group: (each.version, 0) for group, each in counts.items()}

    async def _spec_defaulted_on_bind(
        self, context: _BindContext, reads: ReadCache
    ) -> tuple[Document | None, RelatedObjects]:
        """The spec with what the seed fills in (None where that is nothing), and its sources. Raises Forbidden."""
        current = context.shoot.document()
        wanted = migration.moved(current, context.seed.key.name)
        related = await reads.related(self._admission.related_queries(wanted, current))
        project = related.projects.get(context.shoot.key.namespace)
        profile = related.objects.get(key) if (key := profile_key(current)) else None
        bind_admission.admit_binding(
            current, context.seed.document(), project=project, profile_spec=profile_spec_of(profile)
        )
        spec = self._admission.mutate(wanted, current, related, user=context.user).document["spec"]
        return spec if spec != wanted["spec"] else None, related

    # ------------------------------------------------------------------------------------------ another seed

    async def _move(self, context: _BindContext, reads: ReadCache) -> WriteResult:
        current, seed_name = context.shoot.document(), context.seed.key.name
        match migration.course_of(current, seed_name, force=context.request.force):
            case "unchanged":
                raise StaleVersion(f"{context.shoot.key} is already assigned to the same seed, {seed_name}")
            case "back":
                return await self._write(context, migration.moved(current, seed_name), "back", reads)
            case "move":
                guards = await self._admit_move(context, current, reads)
                await self._admit_without_bastions(context.shoot.key)
                return await self._write(context, migration.moved(current, seed_name), "move", reads, *guards)
            case "restore":
                guards = await self._admit_move(context, current, reads)
                state = await self._state_of(context.shoot, current, reads)
                document = migration.restored_by_force(current, seed_name, now=timestamp(self._clock.now()))
                return await self._write(context, document, "restore", reads, state, *guards)

    async def _admit_move(
        self, context: _BindContext, current: Document, reads: ReadCache
    ) -> Sequence[WritePrecondition]:
        """Guards on what a migration to the seed is based on. Raises Forbidden unless the shoot may go there."""
        namespace, profile = context.shoot.key.namespace, profile_key(current)
        source = ObjectKey("seed", "", migration.source_of(current))
        queries: list[RelatedQuery] = [ProjectQuery(namespace), ObjectQuery(source)]
        if profile is not None:
            queries.append(ObjectQuery(profile))
        related = await reads.related(queries)
        bind_admission.admit_migration(
            current,
            related.objects.get(source) if source != context.seed.key else None,
            context.seed.document(),
            project=related.projects.get(namespace),
            profile_spec=profile_spec_of(related.objects.get(profile) if profile else None),
        )
        return _guard_on(await self._admit_groups(context, related), context)

    async def _admit_without_bastions(self, shoot: ObjectKey) -> None:
        """Raise Forbidden while somebody may be inside of a shoot."""
        for bastion in await list_all(self._store, "bastion", shoot.namespace):
            if shoot_of_bastion(bastion.document()) == shoot:
                raise Forbidden(
                    f"{shoot} has a bastion ({bastion.key.name}): delete it first, or wait until it expires"
                )

    async def _state_of(self, shoot: StoredObject, current: Document, reads: ReadCache) -> WritePrecondition:
        """Guard on the shoot's ShootState as it was read. Raises Forbidden when there is none."""
        key = ObjectKey("shootstate", shoot.key.namespace, shoot.key.name)
        state = await reads.get(key)
        migration.admit_state(current, state.document() if state is not None else None)
        return Precondition(key, state.version if state is not None else 0).guard

    async def _write(
        self,
        context: _BindContext,
        document: Document,
        course: str,
        reads: ReadCache,
        *preconditions: WritePrecondition,
    ) -> WriteResult:
        """Write the shoot with its other seed; the store checks the seed as for a bind."""
        try:
            stored = await self._store.update(
                context.shoot,
                document,
                bump_generation=course == "restore",
                scheduling_generation=context.seed.scheduling_generation,
                preconditions=(*preconditions, *guards_of(context.condition)),
            )
        except Forbidden as error:
            reads.invalidate(context.seed.key)
            now = await reads.get(context.seed.key)
            if now is None or now.scheduling_generation != context.seed.scheduling_generation:
                raise Conflict(f"{context.seed.key} changed meanwhile") from error
            raise
        assert isinstance(stored, StoredObject)  # only what has an origin is superseded
        reads.record(context.shoot.key, stored)
        await self._record_event(context, course)
        return WriteResult(context.shoot.key, "configured", stored)

    async def _record_event(self, context: _BindContext, course: str) -> None:
        """Record the Event of a course, with the requester."""
        kind, reason, text = _EVENTS[course]
        bound, to = context.shoot.parts.seed_name, context.seed.key.name
        before = context.shoot.parts.status_seed_name or bound
        message = text.format(user=context.user, before=before, bound=bound, to=to)
        _log.info("shoot.bound", object=str(context.shoot.key), course=course, seed=to, user=context.user)
        if course == "move":
            metrics.MIGRATIONS.inc()
        event = EventRecord(
            about=context.shoot.key,
            uid=context.shoot.uid,
            type=kind,
            reason=reason,
            message=message,
            reporter=REPORTER,
            action="Bind",
        )
        try:
            await self._store.record_event(event)
        except Unavailable as error:  # the bind itself is done
            _log.warning("event.lost", object=str(context.shoot.key), reason=error.message)


def _guard_on(groups: SeenGroups, context: _BindContext) -> Sequence[WritePrecondition]:
    if not groups:
        return ()
    shoot = context.shoot.key
    return (WritePrecondition("groups", shoot.stored, f"a group of {shoot} changed meanwhile", groups=groups),)


_NO_ROOM = "{seed} has no room for {shoot}: it has no place left, or less than is requested of a resource (see explain)"

_ERRORS: Mapping[BindOutcome, tuple[type[GardenbusError], str]] = {
    "gone": (Missing, "{shoot} not found"),
    "scheduled": (StaleVersion, "{shoot} has been placed meanwhile"),
    "deleting": (Forbidden, "{shoot} is being deleted"),
    "seed-gone": (Forbidden, "{seed} is being deleted or marked for removal"),
    "circular": (Forbidden, "{seed} is hosted by {shoot}, directly or through further ManagedSeeds"),
    "full": (Forbidden, "{seed} already has the maximum number of shoots scheduled on it"),
    "runs-elsewhere": (
        Forbidden,
        "{shoot} cannot be placed: a seed runs it, where the store has lost it: adopt it, or forget it, there",
    ),
    "recovering": (
        Forbidden,
        "{shoot} was ordered before the store was restored, and may run somewhere: see gardenbus recovery",
    ),
    "seed-silent": (
        Forbidden,
        "{seed} has not reported yet what it runs since the store was restored: see gardenbus recovery",
    ),
}
"""Error of each outcome of a bind; after a plain Conflict it is retried."""


def _bind_error(outcome: BindOutcome, shoot: ObjectKey, seed: ObjectKey) -> GardenbusError:
    error, message = _ERRORS.get(outcome, (Conflict, "{shoot} or {seed} changed meanwhile"))
    return error(message.format(shoot=shoot, seed=seed))
