"""Enqueues the seeds whose installations a change may concern; none while nothing is registered."""

from collections.abc import Iterable

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.extensions import REGISTRATION_FINALIZER
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.enqueue_on_change import beyond_status
from gardenbus.controllermanager.domain.installations import REGISTRATION, deployment_name
from gardenbus.controllermanager.watch.installed import Installed
from gardenbus.controllermanager.watch.loop import LoopContext
from gardenbus.controllermanager.watch.seed_needs import SeedNeeds

SEED = "seed"


class InstallationEnqueuer:
    """See the module. `changed` is an informer's callback for what the loop over installations follows."""

    def __init__(self, context: LoopContext, needs: SeedNeeds, installed: Installed) -> None:
        self._objects = context.objects
        self._enqueue = context.enqueue
        self._needs = needs
        self._installed = installed

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Handle a change of an object of a kind that is followed."""
        affected = self._affected(key, old, new)
        seeds = self._objects.objects(SEED) if affected is None else [ObjectKey(SEED, "", seed) for seed in affected]
        for seed in seeds:
            self._enqueue(seed)

    def _affected(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> Iterable[str] | None:
        """The seeds that are affected; None for all."""
        by_needs = self._needs.changed(key, old, new)
        is_other = old is None or new is None or beyond_status(old) != beyond_status(new)
        is_in_use = bool(self._objects.objects(REGISTRATION))
        match key.kind:
            case "seed":
                is_held = new is not None and REGISTRATION_FINALIZER in new.parts.finalizers
                return (key.name,) if new is not None and is_other and (is_in_use or is_held) else ()
            case "controllerregistration":
                return None if is_other else ()
            case "controllerdeployment":
                return None if is_other and self._is_named(key.name) else ()
            case "controllerinstallation":
                return self._installed.changed(key, old, new)
            case _:
                return by_needs if is_in_use else ()

    def _is_named(self, deployment: str) -> bool:
        registrations = self._objects.objects(REGISTRATION).values()
        return any(deployment_name(each.document()) == deployment for each in registrations)
