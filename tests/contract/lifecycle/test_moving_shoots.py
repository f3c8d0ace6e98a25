"""Lifecycle tracks a shoot's migration from seed to seed, on a real bus."""

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import Header, ObjectKey
from tests.contract.lifecycle.conftest import Scene
from tests.support.builders import CORE, a_condition, a_project, a_seed, a_shoot
from tests.support.eventually import eventually

STATE: Document = {
    "apiVersion": CORE,
    "kind": "ShootState",
    "metadata": {"name": "apollo", "namespace": "garden-dev"},
    "spec": {"gardener": []},
}
FINALIZER = "core.gardener.cloud/shootstate"


def a_good_seed(name: str) -> Document:
    conditions = [a_condition("GardenletReady"), a_condition("SeedSystemComponentsHealthy")]
    return a_seed(name, status={"observedGeneration": 1, "conditions": conditions})


async def until_constraint(scene: Scene, status: str | None) -> None:
    async def so() -> None:
        shoot = await scene.now("shoot", "apollo", "garden-dev")
        found = get_condition(conditions_of(shoot, "constraints"), "ReadyForMigration")
        assert (found or {}).get("status") == status, shoot.get("status")

    await eventually(so, every=0.02)


async def place(scene: Scene, *seeds: Document) -> None:
    await scene.add(a_project())
    for seed in seeds:
        await scene.add(seed)
    await scene.add(a_shoot(spec={"seedName": "one"}, status={"seedName": "one"}))


async def move(scene: Scene, seed: str) -> None:
    def change(document: Document) -> None:
        document["spec"]["seedName"] = seed

    await scene.write("shoot", "apollo", change, "garden-dev")


async def report(scene: Scene, kind: str, state: str, seed: str) -> None:
    def change(document: Document) -> None:
        document["status"] |= {"seedName": seed, "lastOperation": {"type": kind, "state": state}}

    await scene.write("shoot", "apollo", change, "garden-dev")


async def test_a_ready_destination_is_said_to_be_and_the_source_is_told(scene: Scene) -> None:
    await place(scene, a_good_seed("one"), a_good_seed("two"))
    await scene.start_lifecycle()
    await move(scene, "two")
    await until_constraint(scene, "True")

    async def reported() -> None:
        last = await scene.bus.last(
            scene.subjects.stream("BINDINGS"), scene.subjects.binding("one", "garden-dev", "apollo")
        )
        assert last is not None
        assert last.headers[Header.ROLE] == "migrate-away"
        assert b"ReadyForMigration" in last.body

    await eventually(reported)
    await move(scene, "one")
    await until_constraint(scene, None)


async def test_a_destination_that_turns_ready_is_noticed_at_once(scene: Scene) -> None:
    await place(scene, a_good_seed("one"), a_good_seed("two") | {"status": {}})
    await scene.start_lifecycle()
    await move(scene, "two")
    await until_constraint(scene, "False")

    def heal(document: Document) -> None:
        document["status"] = a_good_seed("two")["status"]

    await scene.write("seed", "two", heal)
    await until_constraint(scene, "True")


async def test_a_destination_that_is_deleted_is_ready_no_more(scene: Scene) -> None:
    await place(
        scene, a_good_seed("one"), a_good_seed("two") | {"metadata": {"name": "two", "finalizers": ["gardener"]}}
    )
    await scene.start_lifecycle()
    await move(scene, "two")
    await until_constraint(scene, "True")
    stored = await scene.store.get(ObjectKey("seed", "", "two"))
    assert stored is not None
    await scene.store.delete(stored)
    await until_constraint(scene, "False")


async def test_a_state_is_held_from_the_migration_until_it_was_restored(scene: Scene) -> None:
    await place(scene, a_good_seed("one"), a_good_seed("two"))
    await scene.add(STATE)
    await scene.start_lifecycle()

    async def held(expected: bool) -> None:
        state = await scene.now("shootstate", "apollo", "garden-dev")
        assert (FINALIZER in state["metadata"].get("finalizers", [])) is expected

    await move(scene, "two")
    await until_constraint(scene, "True")
    await report(scene, "Migrate", "Succeeded", "two")
    await eventually(lambda: held(True), every=0.02)
    await until_constraint(scene, None)
    await report(scene, "Restore", "Succeeded", "two")
    await eventually(lambda: held(False), every=0.05)
