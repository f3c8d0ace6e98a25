"""The condition ExtensionsReady of Seeds; those on which nothing may be installed have none."""

from operator import methodcaller

from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.extensions import REGISTRATION_FINALIZER
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileResult
from gardenbus.common.controller.writes import update
from gardenbus.common.ports.clock import timestamp
from gardenbus.controllermanager.domain.extensions_check import with_extensions_ready, without_extensions_ready
from gardenbus.controllermanager.domain.installations import INSTALLATION
from gardenbus.controllermanager.watch.installed import Installed, seed_of
from gardenbus.controllermanager.watch.loop import BuiltLoop, Loop, LoopContext, existing

NAME = "seedextensionscheck"
KIND = "seed"


class ExtensionsCheckReconciler:
    """Reconciles the condition of one Seed at a time."""

    def __init__(self, context: LoopContext, installed: Installed) -> None:
        self._store = context.store
        self._clock = context.clock
        self._installed = installed

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Reconcile a Seed. Raises Conflict, Unavailable."""
        seed = stored.document()
        if REGISTRATION_FINALIZER not in stored.parts.finalizers:
            checked = without_extensions_ready(seed)
        else:
            found = await self._store.get_many(sorted(self._installed.on(stored.key.name)))
            installations = [each.document() for each in found if each is not None]
            checked = with_extensions_ready(seed, installations, timestamp(self._clock.now()))
        if checked is not seed:
            await update(self._store, stored, checked)
        return Done()


def _build(context: LoopContext) -> BuiltLoop:
    installed = Installed()

    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue Seeds that get or lose the finalizer, and those of installations whose conditions change."""
        if key.kind == INSTALLATION:
            installed.changed(key, old, new)
            documents = [None if each is None else each.document() for each in (old, new)]
            before, after = (None if each is None else conditions_of(each) for each in documents)
            if before != after:
                for seed in {seed_of(each) for each in documents if each is not None}:
                    context.enqueue(ObjectKey(KIND, "", seed))
        elif new is not None and (old is None or _is_held(old) != _is_held(new)) and (_is_held(new) or old is not None):
            context.enqueue(key)

    return BuiltLoop(existing(context, KIND, ExtensionsCheckReconciler(context, installed).reconcile), changed)


def _is_held(seed: StoredObject) -> bool:
    return REGISTRATION_FINALIZER in seed.parts.finalizers


LOOP = Loop(NAME, (KIND, INSTALLATION), _build, methodcaller("workers", NAME))
