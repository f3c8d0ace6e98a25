"""Enqueues shoots when the moment of their maintenance has come."""

from typing import assert_never

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.garden.shoot_operations import MAINTAIN, OPERATION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.wait import forever
from gardenbus.controllermanager.domain.moments import Moments
from gardenbus.controllermanager.domain.shoot_maintenance import (
    AwaitWindow,
    MaintainNow,
    NotMaintained,
    decide_maintenance,
)
from gardenbus.controllermanager.domain.shoot_parts import is_status_alone, maintenance_part
from gardenbus.controllermanager.watch.loop import LoopContext

CHECK_SECONDS = 5.0
"""Time between two checks which shoots are due."""


class MaintenanceClock:
    """See the module. `changed` is an informer's callback for shoots."""

    def __init__(self, context: LoopContext) -> None:
        self._clock = context.clock
        self._objects = context.objects
        self._enqueue = context.enqueue
        self._moments = Moments()

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Plan each shoot once, and when its window changes or a maintenance is requested."""
        if new is None:
            self._moments.forget(key)
        elif not is_status_alone(old, new) and (old is None or _relevant(old) != _relevant(new)):
            self._plan(new)

    async def run(self) -> None:
        """Plan those whose moment has come, until cancelled."""
        await forever(self._plan_due, period_seconds=CHECK_SECONDS, sleep=self._clock.sleep, is_immediate=False)

    def _plan_due(self) -> None:
        for key in self._moments.due(self._clock.now()):
            if (shoot := self._objects.objects("shoot").get(key)) is not None:
                self._plan(shoot)

    def _plan(self, shoot: StoredObject) -> None:
        """Enqueue a shoot if it is due, and note when it is next."""
        decision = decide_maintenance(maintenance_part(shoot), self._clock.now())
        match decision:
            case NotMaintained():
                self._moments.forget(shoot.key)
            case AwaitWindow(at=at):
                self._moments.set(shoot.key, at)
            case MaintainNow(next_at=next_at):
                self._moments.set(shoot.key, next_at)
                self._enqueue(shoot.key)
            case _:
                assert_never(decision)


def _relevant(stored: StoredObject) -> object:
    part = maintenance_part(stored)
    is_requested = MAINTAIN in str(section(part, "metadata", "annotations").get(OPERATION))
    return is_requested, section(part, "spec", "maintenance").get("timeWindow"), stored.is_deleting
