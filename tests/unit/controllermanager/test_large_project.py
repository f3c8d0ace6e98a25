"""A project with ten thousand shoots is deleted in order."""

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, RequeueAfter
from gardenbus.controllermanager.controllers import credentials, protection
from gardenbus.controllermanager.controllers.project import LOOP
from gardenbus.relay.ports.outbox import ObjectEntry
from tests.support.builders import CORE, a_project, a_shoot
from tests.support.loops import Garden

PROJECT = ObjectKey("project", "", "dev")
SHOOTS, SECRETS, WIDGETS = 10_000, 2_000, 1_998


def removed(garden: Garden) -> list[ObjectKey]:
    """Objects in the order of their removal."""
    entries = [each for each in garden.store.state.outbox if isinstance(each, ObjectEntry)]
    return [each.key for each in entries if each.verb == "deleted"]


async def test_a_project_with_ten_thousand_shoots_is_deleted_in_order() -> None:
    garden = Garden()
    await garden.add(a_project())
    await garden.reconcile(LOOP, PROJECT)
    metadata = {"namespace": "garden-dev"}
    await garden.add(
        *(a_shoot(f"s{number}") for number in range(SHOOTS)),
        *(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"k{number}", **metadata}}
            for number in range(SECRETS)
        ),
        *(
            {
                "apiVersion": "widgets.gardener.cloud/v1",
                "kind": "Widget",
                "metadata": {"name": f"w{number}", **metadata},
            }
            for number in range(WIDGETS)
        ),
        {
            "apiVersion": CORE,
            "kind": "SecretBinding",
            "metadata": {"name": "mine", **metadata},
            "provider": {"type": "aws"},
            "secretRef": {"name": "k0"},
        },
    )
    binding, secret = ObjectKey("secretbinding", "garden-dev", "mine"), ObjectKey("secret", "garden-dev", "k0")
    bindings = next(loop for loop in protection.LOOPS if loop.kind == "secretbinding")
    secrets = next(loop for loop in credentials.LOOPS if loop.kind == "secret")
    await garden.reconcile(bindings, binding)
    await garden.reconcile(secrets, secret)
    await garden.delete(PROJECT)
    assert isinstance(await garden.reconcile(LOOP, PROJECT), RequeueAfter)

    changed = LOOP.build(garden.context(LOOP.name)).changed
    for number in range(SHOOTS):
        shoot = await garden.store.get(ObjectKey("shoot", "garden-dev", f"s{number}"))
        assert shoot is not None
        await garden.store.delete(shoot)
        if number % 2_000 == 0 or number == SHOOTS - 1:
            changed(shoot.key, shoot, None)
            assert garden.enqueued.pop() == (LOOP.name, PROJECT)
            assert isinstance(await garden.reconcile(LOOP, PROJECT), RequeueAfter)
    assert (await garden.store.get(binding)) is not None, "its finalizer is the other loop's"
    assert await garden.reconcile(bindings, binding) == Done("it is released")
    assert isinstance(await garden.reconcile(LOOP, PROJECT), RequeueAfter)
    await garden.reconcile(secrets, secret)
    assert await garden.reconcile(LOOP, PROJECT) == Done("it is released")

    order = removed(garden)
    assert len(order) == SHOOTS + SECRETS + WIDGETS + 3
    assert {key.kind for key in order[:SHOOTS]} == {"shoot"}
    assert order[SHOOTS] == binding
    assert {key.kind for key in order[SHOOTS + 1 :][:WIDGETS]} == {"widget"}
    assert {key.kind for key in order[SHOOTS + 1 + WIDGETS :][:SECRETS]} == {"secret"}
    assert [key.kind for key in order[-2:]] == ["namespace", "project"]
    assert (await garden.store.census())["objects.secret"] == 0
