"""The namespace `seed-<name>` of each Seed, with copies of the landscape's Secrets; none without such Secrets."""

from collections.abc import Sequence
from operator import methodcaller

import structlog

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.api.keys import GARDEN_NAMESPACE, SEED_NAMESPACE_PREFIX, ObjectKey, seed_namespace
from gardenbus.common.api.owners import setters_after
from gardenbus.common.controller.controller import Done, ReconcileResult
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.controller.writes import delete, update, version_precondition
from gardenbus.common.errors import AlreadyExists, Conflict, InvalidResource
from gardenbus.controllermanager.domain.references import GARDEN_ROLE
from gardenbus.controllermanager.domain.seed_secrets import (
    copies,
    is_controlled,
    is_copied,
    namespace_of_seed,
    updated_copy,
)
from gardenbus.controllermanager.watch.loop import REPORTER, BuiltLoop, Loop, LoopContext, existing, while_whole

NAME = "seedsecrets"
KIND = "seed"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class SeedSecretsReconciler:
    """Reconciles the copies of one Seed at a time; any number of replicas may run concurrently."""

    def __init__(self, context: LoopContext, originals: set[ObjectKey]) -> None:
        self._store = context.store
        self._originals = originals
        self._events = EventRecorder(context.store, REPORTER)

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Reconcile a Seed. Raises Conflict, Unavailable, and InvalidResource for a namespace of another's."""
        if stored.is_deleting:
            return Done("what it owns goes with it")
        seed, name = stored.document(), stored.key.name
        found = await self._store.get_many(sorted(self._originals))
        originals = [
            each.document() for each in found if each is not None and is_copied(each.key.namespace, each.labels)
        ]
        namespace = await self._store.get(ObjectKey("namespace", "", seed_namespace(name)))
        if namespace is None:
            if not originals:
                return Done("there is nothing to copy")
            await self._create(namespace_of_seed(seed), stored)
        elif not is_controlled(namespace.document(), seed):
            message = f'namespace "{namespace.key.name}" is not controlled by seed "{name}"'
            await self._events.record(stored.key, stored.uid, reason="ReconcileError", message=message)
            raise InvalidResource(message)
        await self._copy(stored, seed, originals)
        return Done()

    async def _copy(self, stored: StoredObject, seed: Document, originals: Sequence[Document]) -> None:
        wanted = copies(seed, originals)
        present = {each.key.name: each for each in await self._present(stored.key.name)}
        for name, document in wanted.items():
            if (copy := present.get(name)) is None:
                await self._create(document, stored)
            elif (updated := updated_copy(copy.document(), document)) != copy.document():
                await update(self._store, copy, updated)
        for name in sorted(present.keys() - wanted.keys()):
            if GARDEN_ROLE in present[name].labels and not await self._is_wanted(name, seed):
                await delete(self._store, present[name])
                log.info("secret.deleted", seed=stored.key.name, secret=name)

    async def _is_wanted(self, name: str, seed: Document) -> bool:
        """True for a copy of a Secret that the store has, though this replica has not heard of it yet."""
        original = await self._store.get(ObjectKey("secret", GARDEN_NAMESPACE, name))
        return original is not None and name in copies(seed, [original.document()])

    async def _present(self, seed: str) -> list[StoredObject]:
        found: list[StoredObject] = []
        token: str | None = None
        while True:
            page = await self._store.list_page("secret", seed_namespace(seed), continue_token=token)
            found += page.objects
            token = page.continue_token
            if token is None:
                return found

    async def _create(self, document: Document, seed: StoredObject) -> None:
        setters = setters_after(None, None, document, OPERATOR)  # the garbage collector deletes it as the system
        try:
            await self._store.create(document, owner_setters=setters, preconditions=(version_precondition(seed),))
        except AlreadyExists as error:  # another replica was faster
            raise Conflict(error.message) from error


def _build(context: LoopContext) -> BuiltLoop:
    originals: set[ObjectKey] = set()

    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue new Seeds, all of them when a Secret that is copied changes, and one whose copy somebody removed."""
        if key.kind == KIND:
            if new is not None and old is None and originals:
                context.enqueue(key)
            return
        if key.namespace.startswith(SEED_NAMESPACE_PREFIX) and new is None:
            seed = ObjectKey(KIND, "", key.namespace.removeprefix(SEED_NAMESPACE_PREFIX))
            if seed in context.objects.objects(KIND):
                context.enqueue(seed)
        was, is_now = (each is not None and is_copied(key.namespace, each.labels) for each in (old, new))
        (originals.add if is_now else originals.discard)(key)
        if was or is_now:
            for seed in context.objects.objects(KIND):
                context.enqueue(seed)

    reconciler = SeedSecretsReconciler(context, originals)
    return BuiltLoop(existing(context, KIND, while_whole(context, reconciler.reconcile)), changed)


LOOP = Loop(NAME, (KIND, "secret"), _build, methodcaller("workers", NAME))
