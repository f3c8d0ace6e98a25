"""Bastions: heartbeats, and their end."""

from operator import attrgetter
from typing import assert_never

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, ReconcileResult, Requeue
from gardenbus.common.controller.enqueue_on_change import beyond_status
from gardenbus.common.errors import NotFound
from gardenbus.controllermanager import metrics
from gardenbus.controllermanager.domain.bastions import (
    AwaitExpiration,
    DeleteBastion,
    LeaveBastion,
    WriteBastion,
    decide_bastion,
    shoot_of,
)
from gardenbus.controllermanager.shoot_requests import until
from gardenbus.controllermanager.watch.loop import BuiltLoop, Loop, LoopContext, existing, while_whole

NAME = KIND = "bastion"
FOLLOWS = (KIND, "shoot")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class BastionReconciler:
    """Reconciles one Bastion at a time; any number of replicas may run concurrently."""

    def __init__(self, context: LoopContext) -> None:
        self._store = context.store
        self._clock = context.clock
        self._longest = context.configuration.bastion.max_lifetime

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Reconcile a Bastion. Raises Conflict, Unavailable."""
        bastion, now = stored.document(), self._clock.now()
        shoot = await self._store.get(shoot_of(bastion))
        decision = decide_bastion(bastion, None if shoot is None else shoot.document(), now, self._longest)
        match decision:
            case LeaveBastion():
                return Done("it is being deleted")
            case AwaitExpiration(at=at):
                return until(at, now, "until it expires")
            case WriteBastion(document=document):
                await self._store.update(stored, document)
                return Requeue("its expiration was written")
            case DeleteBastion(reason=reason):
                try:
                    await self._store.delete(stored)
                except NotFound:
                    return Done("it is gone")
                metrics.DELETED_BASTIONS.inc()
                log.info("bastion.deleted", bastion=str(stored.key), reason=reason)
                return Done(reason)
            case _:
                assert_never(decision)


def _build(context: LoopContext) -> BuiltLoop:
    def changed(key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue Bastions that change, and those of a shoot that moves or goes."""
        if key.kind == KIND:
            if new is not None and (old is None or beyond_status(old) != beyond_status(new)):
                context.enqueue(key)
        elif old is not None and (new is None or _place(old) != _place(new)):
            for bastion in context.objects.objects(KIND).values():
                if bastion.key.namespace == key.namespace and shoot_of(bastion.document()) == key:
                    context.enqueue(bastion.key)

    return BuiltLoop(existing(context, KIND, while_whole(context, BastionReconciler(context).reconcile)), changed)


def _place(shoot: StoredObject) -> object:
    return shoot.is_deleting, shoot.parts.seed_name


LOOP = Loop(NAME, FOLLOWS, _build, attrgetter("bastion.concurrent_syncs"))
