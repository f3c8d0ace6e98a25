"""Loops that delete what is over wait while the store recovers: what they go by may be lost, or older than it was."""

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import RequeueAfter
from gardenbus.common.ports.recovery import RECOVERY_POLL_SECONDS
from gardenbus.controllermanager.controllers import bastion, shoot_quota, stale_project
from gardenbus.controllermanager.watch.loop import Loop
from tests.support.builders import a_project, a_shoot
from tests.support.loops import Garden
from tests.support.memory.recovering import begin_recovery

A_BASTION: Document = {
    "apiVersion": "operations.gardener.cloud/v1alpha1",
    "kind": "Bastion",
    "metadata": {"name": "door", "namespace": "garden-dev"},
    "spec": {"shootRef": {"name": "apollo"}, "seedName": "aws-eu1"},
}


@pytest.mark.parametrize(
    ("loop", "document", "key"),
    [
        (bastion.LOOP, A_BASTION, ObjectKey("bastion", "garden-dev", "door")),
        (shoot_quota.LOOP, a_shoot(), ObjectKey("shoot", "garden-dev", "apollo")),
        (stale_project.LOOP, a_project(), ObjectKey("project", "", "dev")),
    ],
    ids=lambda each: each.name if isinstance(each, Loop) else "",
)
async def test_a_loop_waits_until_the_store_has_recovered(loop: Loop, document: Document, key: ObjectKey) -> None:
    garden = Garden()
    before = await garden.add(document)
    await begin_recovery(garden.store)

    result = await garden.reconcile(loop, key)

    assert isinstance(result, RequeueAfter)
    assert result.seconds == RECOVERY_POLL_SECONDS
    after = await garden.store.get(key)
    assert after is not None
    assert (after.document(), after.is_deleting) == (before.document(), False)
