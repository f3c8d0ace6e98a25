"""Plants as the loop of controllermanager checks them."""

import asyncio
import base64
import contextlib

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import RequeueAfter
from gardenbus.common.errors import Conflict
from gardenbus.controllermanager.controllers import plant
from tests.support.builders import CORE
from tests.support.loops import Garden, request_of

NAMESPACE = "garden-dev"
KEY = ObjectKey("plant", NAMESPACE, "fern")
SECRET = ObjectKey("secret", NAMESPACE, "fern")


def a_plant(name: str = "fern", secret: str = "fern") -> Document:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": CORE, "kind": "Plant", "metadata": metadata, "spec": {"secretRef": {"name": secret}}}


def a_secret(content: str | bytes | None) -> Document:
    raw = content.encode() if isinstance(content, str) else content
    data = {} if raw is None else {"kubeconfig": base64.b64encode(raw).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fern", "namespace": NAMESPACE}, "data": data}


async def checked_plant(garden: Garden, kubeconfig: str | bytes | None = None, *, has_secret: bool = True) -> Document:
    """The Plant after a check; made anew, with its Secret, where there is none."""
    if await garden.store.get(KEY) is None:
        await garden.add(a_plant(), *([a_secret(kubeconfig)] if has_secret else []))
    built = plant.LOOP.build(garden.context("plant"))
    assert built.run is not None
    running = asyncio.create_task(built.run())
    for _ in range(3):  # a conflict is tried again
        with contextlib.suppress(Conflict):
            assert await built.reconcile(request_of(plant.LOOP, KEY)) == RequeueAfter(30)
            break
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return await garden.now("plant", "fern", NAMESPACE) or {}
