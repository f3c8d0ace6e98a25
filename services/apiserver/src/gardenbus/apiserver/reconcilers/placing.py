"""Binding by name: an unscheduled shoot gets its seed, and the control plane of a scheduled one is moved to another.

What a bind means to a placed shoot is in decide/migration.py. Whatever the seed may refuse at that moment (capacity,
deletion, mark, circularity) is checked by the store in the write itself.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec
import structlog

from gardenbus.apiserver.decide import admission, binding, migration
from gardenbus.apiserver.decide.profiles import profile_key, profile_spec_of
from gardenbus.apiserver.reconcilers.attempts import Missing, StaleVersion, Written, insist
from gardenbus.apiserver.reconcilers.preconditions import (
    Condition,
    check_condition,
    check_version,
    guards_of,
    keys_of,
)
from gardenbus.apiserver.reconcilers.reads import Reads
from gardenbus.common.errors import Conflict, Forbidden, GardenbusError, Unavailable
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import Binding, BindOutcome, EventRecord, Guard, Store
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import ObjectKey

_log = structlog.stdlib.get_logger()

REPORTER = "apiserver"

_EVENTS: Mapping[str, tuple[Literal["Normal", "Warning"], str]] = {
    "place": ("Normal", "SchedulingSuccessful"),
    "move": ("Normal", "MigrationRequested"),
    "back": ("Normal", "MigrationTakenBack"),
    "restore": ("Warning", "RestorationForced"),
}
"""Type and reason of the Event that tells of each course."""


class BindBody(msgspec.Struct, frozen=True, rename="camel"):
    """What `bind` is sent. `force` restores the shoot without its present seed, which is lost for good."""

    namespace: str
    name: str
    seed: str
    resource_version: str = ""
    force: bool = False

    @property
    def shoot(self) -> ObjectKey:
        """The shoot that is bound."""
        return ObjectKey("shoot", self.namespace, self.name)

    @property
    def seed_key(self) -> ObjectKey:
        """The seed that it is bound to."""
        return ObjectKey("seed", "", self.seed)


class _Scene(NamedTuple):
    """Who binds what to what, as it was read."""

    asked: BindBody
    shoot: StoredObject
    seed: StoredObject
    user: str
    condition: Condition | None


class Placer:
    """Carries binds out. One for all requests."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def bind(self, asked: BindBody, reads: Reads, *, user: str, condition: Condition | None = None) -> Written:
        """Place a shoot, or have it moved. Raises NotFound, Forbidden, Conflict, Unavailable."""

        async def attempt() -> Written:
            await reads.fetch((asked.shoot, asked.seed_key, *keys_of(condition)))
            await check_condition(condition, reads)
            shoot, seed = await reads.get(asked.shoot), await reads.get(asked.seed_key)
            if shoot is None:
                raise Missing(f"{asked.shoot} is not there")
            check_version(asked.shoot, shoot, asked.resource_version)
            if seed is None:
                raise Missing(f"{asked.seed_key} is not there")
            scene = _Scene(asked, shoot, seed, user, condition)
            return await (self._move(scene, reads) if shoot.parts.seed_name else self._place(scene, reads))

        state = ObjectKey("shootstate", asked.namespace, asked.name)
        return await insist(attempt, (asked.shoot, asked.seed_key, state, *keys_of(condition)), reads, self._clock)

    # ------------------------------------------------------------------------------------------ the first seed

    async def _place(self, scene: _Scene, reads: Reads) -> Written:
        if scene.asked.force:
            raise Forbidden(f"{scene.shoot.key} has no seed yet: bind it without force")
        spec = await self._settled_spec(scene, reads)
        if scene.condition is not None:
            if scene.shoot.is_deleting:
                raise Forbidden(f"{scene.shoot.key} is being deleted")
            current = scene.shoot.document()
            placed = migration.moved({**current, "spec": spec or current["spec"]}, scene.seed.key.name)
            return await self._write(scene, placed, "place", reads)
        wanted = Binding(
            namespace=scene.shoot.key.namespace,
            name=scene.shoot.key.name,
            uid=scene.shoot.uid,
            generation=scene.shoot.generation,
            seed=scene.seed.key.name,
            gate=scene.seed.gate,
            spec=spec,
        )
        outcome = (await self._store.bind([wanted])).outcomes[0]
        if outcome != "bound":
            raise _binding_refusal(outcome, scene.shoot.key, scene.seed.key)
        reads.forget(scene.shoot.key)
        return Written(scene.shoot.key, "configured", await reads.get(scene.shoot.key))

    async def _settled_spec(self, scene: _Scene, reads: Reads) -> Document | None:
        """The spec with what the seed fills in; None where that is nothing. Raises Forbidden."""
        current = scene.shoot.document()
        wanted = migration.moved(current, scene.seed.key.name)
        facts = await reads.facts(admission.facts_needed(wanted, current))
        project = facts.projects.get(scene.shoot.key.namespace)
        profile = facts.objects.get(key) if (key := profile_key(current)) else None
        binding.admit_binding(current, scene.seed.document(), project=project, profile_spec=profile_spec_of(profile))
        spec = admission.mutate(wanted, current, facts, user=scene.user).document["spec"]
        return spec if spec != wanted["spec"] else None

    # ------------------------------------------------------------------------------------------ another seed

    async def _move(self, scene: _Scene, reads: Reads) -> Written:
        current, seed_name = scene.shoot.document(), scene.seed.key.name
        match migration.course_of(current, seed_name, force=scene.asked.force):
            case "unchanged":
                raise StaleVersion(f"{scene.shoot.key} is already assigned to the same seed, {seed_name}")
            case "back":
                return await self._write(scene, migration.moved(current, seed_name), "back", reads)
            case "move":
                await self._admit(scene, current, reads)
                return await self._write(scene, migration.moved(current, seed_name), "move", reads)
            case "restore":
                await self._admit(scene, current, reads)
                state = await self._state_of(scene.shoot, current, reads)
                document = migration.restored_by_force(current, seed_name, now=timestamp(self._clock.now()))
                return await self._write(scene, document, "restore", reads, state)

    async def _admit(self, scene: _Scene, current: Document, reads: Reads) -> None:
        """Raise Forbidden unless the seed may take the shoot over."""
        namespace, profile = scene.shoot.key.namespace, profile_key(current)
        source = ObjectKey("seed", "", migration.source_of(current))
        queries: list[admission.FactQuery] = [admission.ProjectQuery(namespace), admission.ObjectQuery(source)]
        if profile is not None:
            queries.append(admission.ObjectQuery(profile))
        facts = await reads.facts(queries)
        binding.admit_migration(
            current,
            facts.objects.get(source) if source != scene.seed.key else None,
            scene.seed.document(),
            project=facts.projects.get(namespace),
            profile_spec=profile_spec_of(facts.objects.get(profile) if profile else None),
        )

    async def _state_of(self, shoot: StoredObject, current: Document, reads: Reads) -> Guard:
        """What holds that the shoot's ShootState is there as it was read. Raises Forbidden when there is none."""
        key = ObjectKey("shootstate", shoot.key.namespace, shoot.key.name)
        state = await reads.get(key)
        migration.admit_state(current, state.document() if state is not None else None)
        return Condition(key, state.version if state is not None else 0).guard

    async def _write(self, scene: _Scene, document: Document, course: str, reads: Reads, *guards: Guard) -> Written:
        """Write the shoot on its other seed; the store holds the seed to what a bind there needs."""
        try:
            stored = await self._store.update(
                scene.shoot,
                document,
                bump_generation=course == "restore",
                gate=scene.seed.gate,
                guards=(*guards, *guards_of(scene.condition)),
            )
        except Forbidden as error:
            reads.forget(scene.seed.key)
            now = await reads.get(scene.seed.key)
            if now is None or now.gate != scene.seed.gate:
                raise Conflict(f"{scene.seed.key} changed meanwhile") from error
            raise
        assert isinstance(stored, StoredObject)  # only what has an origin is superseded
        reads.note(scene.shoot.key, stored)
        await self._tell(scene, course)
        return Written(scene.shoot.key, "configured", stored)

    async def _tell(self, scene: _Scene, course: str) -> None:
        """Record the Event of a course; who asked is in it."""
        kind, reason = _EVENTS[course]
        before = scene.shoot.parts.status_seed_name or scene.shoot.parts.seed_name
        to = scene.seed.key.name
        message = {
            "place": f'Scheduled to seed "{to}"',
            "move": f'{scene.user} moves the control plane from seed "{before}" to "{to}"',
            "back": f'{scene.user} has it stay on seed "{to}" instead of moving to "{scene.shoot.parts.seed_name}"',
            "restore": f'{scene.user} has it restored on seed "{to}" from its ShootState, without seed "{before}"',
        }[course]
        _log.info("shoot.bound", object=str(scene.shoot.key), course=course, seed=to, user=scene.user)
        event = EventRecord(
            about=scene.shoot.key,
            uid=scene.shoot.uid,
            type=kind,
            reason=reason,
            message=message,
            reporter=REPORTER,
            action="Bind",
        )
        try:
            await self._store.record_event(event)
        except Unavailable as error:  # what was asked for is done
            _log.warning("event.lost", object=str(scene.shoot.key), reason=error.message)


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
        case "circular":
            return Forbidden(f"{seed} is hosted by {shoot}, directly or through further ManagedSeeds")
        case "full":
            return Forbidden(f"{seed} already has the maximum number of shoots scheduled on it")
        case _:
            return Conflict(f"{shoot} or {seed} changed meanwhile")
