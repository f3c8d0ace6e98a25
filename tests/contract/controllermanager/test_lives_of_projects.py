"""Projects from creation to deletion on real servers, by a service that is killed in between."""

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.controller.listing import list_all
from gardenbus.common.ports.bus import StreamMessage
from tests.support.builders import CORE, a_project, a_shoot
from tests.support.eventually import eventually
from tests.support.joint import SUBJECTS, Joint
from tests.support.replicas import a_replica

PROJECT, NAMESPACE = ObjectKey("project", "", "dev"), ObjectKey("namespace", "", "garden-dev")
SHOOTS, SECRETS = 150, 200
WITHIN = 60.0


def a_process(joint: Joint) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
    """A replica as a process of its own."""
    return a_replica("controllermanager", joint.nats, joint.redis)


def a_secret(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "garden-dev"}}


def a_binding() -> Document:
    return {
        "apiVersion": CORE,
        "kind": "SecretBinding",
        "metadata": {"name": "mine", "namespace": "garden-dev"},
        "provider": {"type": "aws"},
        "secretRef": {"name": "k000"},
    }


def a_new_project() -> Document:
    project = a_project()
    del project["status"]
    return project


async def there(joint: Joint, key: ObjectKey) -> StoredObject:
    stored = await joint.store.get(key)
    assert stored is not None, f"{key} not found"
    return stored


async def until_phase(joint: Joint, phase: str) -> None:
    async def so() -> None:
        assert (await there(joint, PROJECT)).document().get("status", {}).get("phase") == phase

    await eventually(so)


async def until_gone(joint: Joint, key: ObjectKey) -> None:
    async def so() -> None:
        assert await joint.store.get(key) is None, f"{key} is still there"

    await eventually(so)


async def removals(joint: Joint) -> list[ObjectKey]:
    """What was removed, in the order of the store."""
    await joint.quiet()
    found: list[tuple[int, ObjectKey]] = []
    async with joint.bus.follow(SUBJECTS.stream("OBJECTS"), ["garden.changed.>"]) as follower:
        async for event in follower:
            if not isinstance(event, StreamMessage):
                break
            if event.headers.get(Header.VERB) == "deleted":
                key = ObjectKey.from_tail(event.subject.removeprefix("garden.changed."))
                found.append((int(event.headers[Header.VERSION]), key))
    return [key for _, key in sorted(found)]


@pytest.mark.slow
async def test_a_project_is_made_and_unmade_in_order_though_the_service_is_killed(joint: Joint) -> None:
    joint.start_relay()
    await joint.create(a_new_project())
    async with a_process(joint) as victim:
        await eventually(lambda: there(joint, NAMESPACE), every=0.005)
        victim.kill()
    for number in range(SHOOTS):
        await joint.create(a_shoot(f"s{number:03}"))
    for number in range(SECRETS):
        await joint.create(a_secret(f"k{number:03}"))
    await joint.create(a_binding())

    async with a_process(joint) as victim:
        await until_phase(joint, "Ready")

        async def protected() -> None:
            for kind, name in (("secretbinding", "mine"), ("secret", "k000")):
                assert (await there(joint, ObjectKey(kind, "garden-dev", name))).parts.finalizers, kind

        await eventually(protected)
        await joint.store.delete(await there(joint, PROJECT))
        await until_phase(joint, "Terminating")
        victim.kill()
    assert len(await list_all(joint.store, "secret", "garden-dev")) == SECRETS
    for shoot in await list_all(joint.store, "shoot", "garden-dev"):
        assert await joint.store.delete(shoot) is None

    async with a_process(joint) as victim:

        async def some_are_gone() -> None:
            assert len(await list_all(joint.store, "secret", "garden-dev")) < SECRETS

        await eventually(some_are_gone, every=0.005)
        victim.kill()
    async with a_process(joint), a_process(joint):
        await until_gone(joint, PROJECT)

    order = await removals(joint)
    assert len(order) == len(set(order)) == SHOOTS + SECRETS + 4  # binding, quota, namespace, Project
    assert {key.kind for key in order[:SHOOTS]} == {"shoot"}
    assert order[SHOOTS].kind == "secretbinding"
    assert {key.kind for key in order[SHOOTS + 1 : -2]} == {"secret", "resourcequota"}
    assert order[-2:] == [NAMESPACE, PROJECT]
    assert await joint.store.get(NAMESPACE) is None


@pytest.mark.slow
async def test_a_project_goes_on_as_soon_as_another_loop_has_let_go_of_what_is_in_it(joint: Joint) -> None:
    """A binding and its secret leave one after the other, each by its own loop: no timer is waited for."""
    joint.start_relay()
    async with a_process(joint):
        await joint.create(a_new_project())
        await until_phase(joint, "Ready")
        await joint.create(a_secret("k000"))
        await joint.create(a_binding())

        async def protected() -> None:
            assert (await there(joint, ObjectKey("secret", "garden-dev", "k000"))).parts.finalizers

        await eventually(protected)
        await joint.store.delete(await there(joint, PROJECT))
        await until_gone(joint, PROJECT)


@pytest.mark.slow
async def test_a_project_is_released_as_soon_as_its_last_shoot_has_gone(joint: Joint) -> None:
    """By the shoot's removal, long before the project is looked at again by its timer."""
    joint.start_relay()
    async with a_process(joint), a_process(joint):
        await joint.create(a_new_project())
        await until_phase(joint, "Ready")
        await joint.create(a_shoot())
        await joint.store.delete(await there(joint, PROJECT))
        await until_phase(joint, "Terminating")
        await joint.store.delete(await there(joint, ObjectKey("shoot", "garden-dev", "apollo")))

        async def gone() -> None:
            assert await joint.store.get(PROJECT) is None

        await eventually(gone)
