"""A placed shoot is bound to another seed: by both gardenlets' hands, and by force when one of them is lost."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.relay.ports.outbox import EventEntry, ObjectEntry
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_seed, a_shoot
from tests.support.eventually import HANG_SECONDS

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
STATE = ObjectKey("shootstate", "garden-dev", "apollo")
CONFIRM = {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}
BACKUP = {"provider": "aws"}


def a_seed_with_backup(name: str, **spec: Any) -> Document:
    return a_seed(name, ready=False, spec={"backup": BACKUP, **spec})


def a_shoot_state(saved: str = "keys") -> Document:
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "ShootState",
        "metadata": {"name": APOLLO.name, "namespace": APOLLO.namespace},
        "spec": {"gardener": [{"name": saved, "type": "secret", "data": {}}]},
    }


def operation(kind: str, state: str, progress: int = 50) -> Document:
    return {"lastOperation": {"type": kind, "state": state, "progress": progress}}


@pytest.fixture
async def placed(apiserver: Apiserver) -> Apiserver:
    """A shoot that stands on the seed `here`, with the seeds `there` and `elsewhere` beside it."""
    for document in (a_project(), a_cloudprofile(), *map(a_seed_with_backup, ("here", "there", "elsewhere"))):
        await apiserver.request("apply", document)
    await apiserver.request("apply", a_shoot(metadata=CONFIRM, spec={"seedName": "here"}))
    await reported(apiserver, "here", {"seedName": "here", **operation("Create", "Succeeded", 100)})
    return apiserver


async def reported(apiserver: Apiserver, seed: str, status: Document) -> None:
    await apiserver.report(seed, APOLLO, {"status": status}, uid=(await apiserver.now(APOLLO)).uid)
    await apiserver.until_handled()


async def rejected_reports(apiserver: Apiserver) -> list[str]:
    return [message.headers["Gardenbus-Reason"] for message in await apiserver.rejected()]


def bind_to(seed: str, **more: Any) -> Document:
    return {"namespace": "garden-dev", "name": "apollo", "seed": seed, **more}


async def seeds(apiserver: Apiserver) -> tuple[str, str]:
    parts = (await apiserver.now(APOLLO)).parts
    return parts.seed_name, parts.status_seed_name


async def usage(apiserver: Apiserver) -> dict[str, int]:
    return {seed: count for seed, count in (await apiserver.kit.store.usage()).seeds.items() if count}


async def test_a_migration_goes_from_hand_to_hand(placed: Apiserver) -> None:
    before = await placed.now(APOLLO)
    bound = await placed.request("bind", bind_to("there"), user="ann")
    assert bound["spec"] == {**before.document()["spec"], "seedName": "there"}
    assert bound["metadata"]["generation"] == before.generation + 1
    assert await seeds(placed) == ("there", "here")
    assert await usage(placed) == {"here": 1, "there": 1}

    await reported(placed, "here", operation("Migrate", "Processing"))
    await placed.report("here", STATE, a_shoot_state(), verb="apply")
    await placed.until_handled()
    await reported(placed, "here", {"seedName": "there", **operation("Migrate", "Succeeded", 100)})
    assert await seeds(placed) == ("there", "there")
    assert await usage(placed) == {"there": 1}
    handed_over = await placed.now(APOLLO)
    assert handed_over.generation == before.generation + 2

    await reported(placed, "there", {**operation("Restore", "Processing"), "observedGeneration": before.generation})
    await reported(
        placed, "there", {**operation("Restore", "Succeeded", 100), "observedGeneration": handed_over.generation}
    )
    status = (await placed.now(APOLLO)).document()["status"]
    assert (status["lastOperation"]["type"], status["observedGeneration"]) == ("Restore", handed_over.generation)
    assert await placed.rejected() == []


async def test_the_source_is_not_heard_any_more_once_it_has_handed_over(placed: Apiserver) -> None:
    await placed.request("bind", bind_to("there"))
    await reported(placed, "there", operation("Restore", "Processing"))
    await reported(placed, "here", {"seedName": "there", **operation("Migrate", "Succeeded", 100)})
    await reported(placed, "here", {"conditions": [a_condition("APIServerAvailable", "False")]})
    await placed.report("here", STATE, a_shoot_state("late"), verb="apply")
    await placed.until_handled()

    early, late, state = await rejected_reports(placed)
    assert "belongs to seed here, not to there" in early
    assert "belongs to seed there, not to here" in late
    assert "its shoot is not on seed here" in state
    document = (await placed.now(APOLLO)).document()
    assert document["status"]["lastOperation"]["type"] == "Migrate"
    assert "conditions" not in document["status"]


async def test_a_handover_that_is_delivered_again_is_no_refusal(idle_apiserver: Apiserver) -> None:
    bus = await idle_apiserver.start()
    for document in (a_project(), a_cloudprofile(), *map(a_seed_with_backup, ("here", "there"))):
        await idle_apiserver.request("apply", document)
    await idle_apiserver.request("apply", a_shoot(spec={"seedName": "here"}))
    await reported(idle_apiserver, "here", {"seedName": "here"})
    await idle_apiserver.request("bind", bind_to("there"))
    await idle_apiserver.contexts.pop().close()

    queue = await bus.work_queue(
        idle_apiserver.subjects.stream("REPORTS"), "apiserver", f"{idle_apiserver.subjects.prefix}.report.>"
    )
    handover = {"seedName": "there", **operation("Migrate", "Succeeded", 100)}
    uid = (await idle_apiserver.now(APOLLO)).uid
    await idle_apiserver.report("here", APOLLO, {"status": handover}, uid=uid)
    (held,) = await queue.fetch(1, HANG_SECONDS)
    stored = await idle_apiserver.now(APOLLO)
    fences = b'[%d,[%d,-1,{"seedName":%d}]]' % (
        (await bus.position(idle_apiserver.subjects.stream("REPORTS"))).created,
        held.message.sequence,
        held.message.sequence,
    )
    document = stored.document()
    document["status"] |= handover
    await idle_apiserver.kit.store.update(stored, document, report_stamps=fences, bump_generation=True)
    await held.release()
    await idle_apiserver.start()
    await idle_apiserver.until_handled()

    assert await seeds(idle_apiserver) == ("there", "there")
    assert await idle_apiserver.rejected() == []


async def test_a_migration_that_has_not_begun_is_taken_back_or_given_another_target(placed: Apiserver) -> None:
    await placed.request("bind", bind_to("there"))
    await placed.request("bind", bind_to("elsewhere"))
    assert await usage(placed) == {"here": 1, "elsewhere": 1}
    await placed.request("bind", bind_to("here"))

    assert await seeds(placed) == ("here", "here")
    assert await usage(placed) == {"here": 1}
    error = await placed.rejection("bind", bind_to("here"))
    assert (error["code"], "already assigned to the same seed" in error["message"]) == (409, True)


@pytest.mark.parametrize("moving", [("Migrate", "Processing"), ("Migrate", "Failed")])
async def test_a_migration_that_has_begun_gets_no_second_target(placed: Apiserver, moving: tuple[str, str]) -> None:
    await placed.request("bind", bind_to("there"))
    await reported(placed, "here", operation(*moving))

    for seed in ("here", "elsewhere"):
        error = await placed.rejection("bind", bind_to(seed))
        assert error["code"] == 403
        assert "moving from here to there" in error["message"]
    await reported(placed, "here", {"seedName": "there", **operation("Migrate", "Succeeded", 100)})
    await reported(placed, "there", operation("Restore", "Error"))
    assert (
        "moving to there (its last operation is Restore, Error)"
        in (await placed.rejection("bind", bind_to("elsewhere")))["message"]
    )
    await reported(placed, "there", operation("Restore", "Succeeded", 100))
    await placed.request("bind", bind_to("elsewhere"))


async def test_a_shoot_that_moves_is_neither_changed_nor_deleted(placed: Apiserver) -> None:
    await placed.request("bind", bind_to("there"))
    error = await placed.rejection("patch.shoot.garden-dev.apollo", {"spec": {"purpose": "production"}})
    assert (error["code"], error["details"][0]["field"]) == (403, "spec")
    await reported(placed, "here", operation("Migrate", "Processing"))
    assert "moves" in (await placed.rejection("delete.shoot.garden-dev.apollo"))["message"]
    await placed.request("patch.shoot.garden-dev.apollo", {"metadata": {"labels": {"a": "b"}}})
    await placed.request("apply", a_shoot(metadata=CONFIRM, spec={"seedName": "there"}))

    await reported(placed, "here", {"seedName": "there", **operation("Migrate", "Succeeded", 100)})
    await reported(placed, "there", operation("Restore", "Succeeded", 100))
    await placed.request("patch.shoot.garden-dev.apollo", {"spec": {"purpose": "production"}})
    await placed.request("delete.shoot.garden-dev.apollo")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (a_seed("target", ready=False), "no spec.backup"),
        (a_seed_with_backup("target", taints=[{"key": "special"}]), "taints (special)"),
        (a_seed_with_backup("target", dns={"internal": {"domain": "other.example"}}), "internal domain"),
        (a_seed_with_backup("target", networks={"pods": "100.96.0.0/16"}), "overlap with the seed's pods"),
    ],
)
async def test_a_seed_that_cannot_take_it_over_is_refused(placed: Apiserver, target: Document, reason: str) -> None:
    await placed.request("apply", target)
    error = await placed.rejection("bind", bind_to("target"))

    assert (error["code"], reason in error["message"]) == (403, True), error
    assert await seeds(placed) == ("here", "here")


async def test_a_seed_that_is_full_marked_or_gone_is_refused_in_the_write(placed: Apiserver) -> None:
    there = ObjectKey("seed", "", "there")
    stored = await placed.now(there)
    await placed.kit.store.update(stored, {**stored.document(), "status": {"allocatable": {"shoots": "0"}}})
    assert "maximum number of shoots" in (await placed.rejection("bind", bind_to("there")))["message"]
    mark = {"metadata": {"annotations": {"seedmanagement.gardener.cloud/marked-for-removal": "garden/set"}}}
    await placed.request("patch.seed._.elsewhere", mark)
    assert "marked for removal" in (await placed.rejection("bind", bind_to("elsewhere")))["message"]
    assert (await placed.rejection("bind", bind_to("nowhere")))["code"] == 404
    assert await usage(placed) == {"here": 1}


async def test_a_bind_is_told_as_an_event(placed: Apiserver) -> None:
    await placed.kit.fresh_entries()
    await placed.request("bind", bind_to("there"), user="ann")
    await placed.request("bind", bind_to("here"), user="bob")

    announced = [(entries.event.reason, entries.event.message) for entries in await placed.kit.events()]
    assert announced == [
        ("MigrationRequested", 'ann moves the control plane from seed "here" to "there"'),
        ("MigrationTakenBack", 'bob has it stay on seed "here" instead of moving to "there"'),
    ]


async def test_force_restores_without_the_source_and_fences_it_off(placed: Apiserver) -> None:
    error = await placed.rejection("bind", bind_to("there", force=True))
    assert "shootstate garden-dev/apollo not found" in error["message"]
    await placed.report("here", STATE, a_shoot_state(), verb="apply")
    await placed.until_handled()
    before = await placed.now(APOLLO)
    await placed.kit.fresh_entries()
    bound = await placed.request("bind", bind_to("there", force=True), user="ann")

    assert await seeds(placed) == ("there", "there")
    assert bound["status"]["lastOperation"].items() >= {"type": "Migrate", "state": "Aborted"}.items()
    assert bound["metadata"]["generation"] == before.generation + 1
    assert await usage(placed) == {"there": 1}
    entries = await placed.kit.fresh_entries()
    assert [entry.left for entry in entries if isinstance(entry, ObjectEntry) and entry.key == APOLLO] == [("here",)]
    assert [entry.event.reason for entry in entries if isinstance(entry, EventEntry)] == ["RestorationForced"]

    await reported(placed, "here", {"seedName": "here", **operation("Reconcile", "Succeeded", 100)})
    await reported(placed, "here", {"seedName": "there", **operation("Migrate", "Succeeded", 100)})
    await placed.report("here", STATE, a_shoot_state("stale"), verb="apply")
    await placed.until_handled()
    assert [reason.split(":")[0] for reason in await rejected_reports(placed)] == ["Forbidden"] * 3
    assert (await placed.now(STATE)).document()["spec"]["gardener"][0]["name"] == "keys"
    await reported(placed, "there", operation("Restore", "Processing"))
    assert (await placed.now(APOLLO)).document()["status"]["lastOperation"]["type"] == "Restore"


async def test_force_overrules_a_migration_that_is_stuck(placed: Apiserver) -> None:
    await placed.report("here", STATE, a_shoot_state(), verb="apply")
    await placed.request("bind", bind_to("there"))
    await reported(placed, "here", operation("Migrate", "Processing"))
    await placed.request("bind", bind_to("there", force=True))
    assert await seeds(placed) == ("there", "there")
    await reported(placed, "there", operation("Restore", "Processing"))
    await placed.request("bind", bind_to("elsewhere", force=True))
    assert await seeds(placed) == ("elsewhere", "elsewhere")
    assert await usage(placed) == {"elsewhere": 1}


async def test_a_shoot_that_nobody_runs_is_not_restored(placed: Apiserver) -> None:
    await placed.request("apply", a_shoot("fresh"))
    fresh = bind_to("there", name="fresh", force=True)
    assert "no seed yet" in (await placed.rejection("bind", fresh))["message"]
    await placed.request("bind", fresh | {"force": False})
    assert "without force" in (await placed.rejection("bind", fresh | {"seed": "here"}))["message"]


async def test_an_older_shoot_state_does_not_come_over_a_newer_one(placed: Apiserver) -> None:
    uid = (await placed.now(APOLLO)).uid
    owner = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": "apollo", "uid": uid}
    for generation in ("2", "1", "3"):
        state = a_shoot_state(f"of-{generation}")
        state["metadata"] |= {
            "annotations": {"shootstate.gardenbus.io/generation": generation},
            "ownerReferences": [owner],
        }
        await placed.report("here", STATE, state, verb="apply")
        await placed.until_handled()
        kept = (await placed.now(STATE)).document()["spec"]["gardener"][0]["name"]
        assert kept == ("of-2" if generation == "1" else f"of-{generation}")
    assert await placed.rejected() == []
    await placed.request("bind", bind_to("there", force=True))
