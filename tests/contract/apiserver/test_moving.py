"""A placed shoot is bound to another seed: by both gardenlets' hands, and by force when one of them is lost."""

from typing import Any

import pytest

from gardenbus.common.ports.outbox import EventNews, ObjectNews
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_seed, a_shoot

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
async def standing(apiserver: Apiserver) -> Apiserver:
    """A shoot that stands on the seed `here`, with the seeds `there` and `elsewhere` beside it."""
    for document in (a_project(), a_cloudprofile(), *map(a_seed_with_backup, ("here", "there", "elsewhere"))):
        await apiserver.ask("apply", document)
    await apiserver.ask("apply", a_shoot(metadata=CONFIRM, spec={"seedName": "here"}))
    await reported(apiserver, "here", {"seedName": "here", **operation("Create", "Succeeded", 100)})
    return apiserver


async def reported(apiserver: Apiserver, seed: str, status: Document) -> None:
    await apiserver.report(seed, APOLLO, {"status": status}, uid=(await apiserver.now(APOLLO)).uid)
    await apiserver.until_taken()


async def refused_reports(apiserver: Apiserver) -> list[str]:
    return [message.headers["Gardenbus-Reason"] for message in await apiserver.rejected()]


def bind_to(seed: str, **more: Any) -> Document:
    return {"namespace": "garden-dev", "name": "apollo", "seed": seed, **more}


async def seeds(apiserver: Apiserver) -> tuple[str, str]:
    parts = (await apiserver.now(APOLLO)).parts
    return parts.seed_name, parts.status_seed_name


async def usage(apiserver: Apiserver) -> dict[str, int]:
    return {seed: count for seed, count in (await apiserver.kit.store.usage()).seeds.items() if count}


async def test_a_migration_goes_from_hand_to_hand(standing: Apiserver) -> None:
    before = await standing.now(APOLLO)
    bound = await standing.ask("bind", bind_to("there"), user="ann")
    assert bound["spec"] == {**before.document()["spec"], "seedName": "there"}
    assert bound["metadata"]["generation"] == before.generation + 1
    assert await seeds(standing) == ("there", "here")
    assert await usage(standing) == {"here": 1, "there": 1}

    await reported(standing, "here", operation("Migrate", "Processing"))
    await standing.report("here", STATE, a_shoot_state(), verb="apply")
    await standing.until_taken()
    await reported(standing, "here", {"seedName": "there", **operation("Migrate", "Succeeded", 100)})
    assert await seeds(standing) == ("there", "there")
    assert await usage(standing) == {"there": 1}
    handed_over = await standing.now(APOLLO)
    assert handed_over.generation == before.generation + 2

    await reported(standing, "there", {**operation("Restore", "Processing"), "observedGeneration": before.generation})
    await reported(
        standing, "there", {**operation("Restore", "Succeeded", 100), "observedGeneration": handed_over.generation}
    )
    status = (await standing.now(APOLLO)).document()["status"]
    assert (status["lastOperation"]["type"], status["observedGeneration"]) == ("Restore", handed_over.generation)
    assert await standing.rejected() == []


async def test_the_source_is_not_heard_any_more_once_it_has_handed_over(standing: Apiserver) -> None:
    await standing.ask("bind", bind_to("there"))
    await reported(standing, "there", operation("Restore", "Processing"))
    await reported(standing, "here", {"seedName": "there", **operation("Migrate", "Succeeded", 100)})
    await reported(standing, "here", {"conditions": [a_condition("APIServerAvailable", "False")]})
    await standing.report("here", STATE, a_shoot_state("late"), verb="apply")
    await standing.until_taken()

    early, late, state = await refused_reports(standing)
    assert "belongs to seed here, not to there" in early
    assert "belongs to seed there, not to here" in late
    assert "its shoot is not on seed here" in state
    document = (await standing.now(APOLLO)).document()
    assert document["status"]["lastOperation"]["type"] == "Migrate"
    assert "conditions" not in document["status"]


async def test_a_handover_that_is_delivered_again_is_no_refusal(idle_apiserver: Apiserver) -> None:
    bus = await idle_apiserver.start()
    for document in (a_project(), a_cloudprofile(), *map(a_seed_with_backup, ("here", "there"))):
        await idle_apiserver.ask("apply", document)
    await idle_apiserver.ask("apply", a_shoot(spec={"seedName": "here"}))
    await reported(idle_apiserver, "here", {"seedName": "here"})
    await idle_apiserver.ask("bind", bind_to("there"))
    await idle_apiserver.contexts.pop().close()

    queue = await bus.work_queue(
        idle_apiserver.subjects.stream("REPORTS"), "apiserver", f"{idle_apiserver.subjects.prefix}.report.>"
    )
    handover = {"seedName": "there", **operation("Migrate", "Succeeded", 100)}
    uid = (await idle_apiserver.now(APOLLO)).uid
    await idle_apiserver.report("here", APOLLO, {"status": handover}, uid=uid)
    (held,) = await queue.fetch(1, 5)
    stored = await idle_apiserver.now(APOLLO)
    fences = b'[%d,[%d,-1,{"seedName":%d}]]' % (
        (await bus.position(idle_apiserver.subjects.stream("REPORTS"))).created,
        held.message.sequence,
        held.message.sequence,
    )
    document = stored.document()
    document["status"] |= handover
    await idle_apiserver.kit.store.update(stored, document, report_fences=fences, bump_generation=True)
    await held.release()
    await idle_apiserver.start()
    await idle_apiserver.until_taken()

    assert await seeds(idle_apiserver) == ("there", "there")
    assert await idle_apiserver.rejected() == []


async def test_a_migration_that_has_not_begun_is_taken_back_or_given_another_target(standing: Apiserver) -> None:
    await standing.ask("bind", bind_to("there"))
    await standing.ask("bind", bind_to("elsewhere"))
    assert await usage(standing) == {"here": 1, "elsewhere": 1}
    await standing.ask("bind", bind_to("here"))

    assert await seeds(standing) == ("here", "here")
    assert await usage(standing) == {"here": 1}
    error = await standing.refusal("bind", bind_to("here"))
    assert (error["code"], "already assigned to the same seed" in error["message"]) == (409, True)


@pytest.mark.parametrize("moving", [("Migrate", "Processing"), ("Migrate", "Failed")])
async def test_a_migration_that_has_begun_gets_no_second_target(standing: Apiserver, moving: tuple[str, str]) -> None:
    await standing.ask("bind", bind_to("there"))
    await reported(standing, "here", operation(*moving))

    for seed in ("here", "elsewhere"):
        error = await standing.refusal("bind", bind_to(seed))
        assert error["code"] == 403
        assert "moving from here to there" in error["message"]
    await reported(standing, "here", {"seedName": "there", **operation("Migrate", "Succeeded", 100)})
    await reported(standing, "there", operation("Restore", "Error"))
    assert (
        "moving to there (its last operation is Restore, Error)"
        in (await standing.refusal("bind", bind_to("elsewhere")))["message"]
    )
    await reported(standing, "there", operation("Restore", "Succeeded", 100))
    await standing.ask("bind", bind_to("elsewhere"))


async def test_a_shoot_that_moves_is_neither_changed_nor_deleted(standing: Apiserver) -> None:
    await standing.ask("bind", bind_to("there"))
    error = await standing.refusal("patch.shoot.garden-dev.apollo", {"spec": {"purpose": "production"}})
    assert (error["code"], error["details"][0]["field"]) == (403, "spec")
    await reported(standing, "here", operation("Migrate", "Processing"))
    assert "moves" in (await standing.refusal("delete.shoot.garden-dev.apollo"))["message"]
    await standing.ask("patch.shoot.garden-dev.apollo", {"metadata": {"labels": {"a": "b"}}})
    await standing.ask("apply", a_shoot(metadata=CONFIRM, spec={"seedName": "there"}))

    await reported(standing, "here", {"seedName": "there", **operation("Migrate", "Succeeded", 100)})
    await reported(standing, "there", operation("Restore", "Succeeded", 100))
    await standing.ask("patch.shoot.garden-dev.apollo", {"spec": {"purpose": "production"}})
    await standing.ask("delete.shoot.garden-dev.apollo")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (a_seed("target", ready=False), "no spec.backup"),
        (a_seed_with_backup("target", taints=[{"key": "special"}]), "taints (special)"),
        (a_seed_with_backup("target", dns={"internal": {"domain": "other.example"}}), "internal domain"),
        (a_seed_with_backup("target", networks={"pods": "100.96.0.0/16"}), "overlap with the seed's pods"),
    ],
)
async def test_a_seed_that_cannot_take_it_over_is_refused(standing: Apiserver, target: Document, reason: str) -> None:
    await standing.ask("apply", target)
    error = await standing.refusal("bind", bind_to("target"))

    assert (error["code"], reason in error["message"]) == (403, True), error
    assert await seeds(standing) == ("here", "here")


async def test_a_seed_that_is_full_marked_or_gone_is_refused_in_the_write(standing: Apiserver) -> None:
    there = ObjectKey("seed", "", "there")
    stored = await standing.now(there)
    await standing.kit.store.update(stored, {**stored.document(), "status": {"allocatable": {"shoots": "0"}}})
    assert "maximum number of shoots" in (await standing.refusal("bind", bind_to("there")))["message"]
    mark = {"metadata": {"annotations": {"seedmanagement.gardener.cloud/marked-for-removal": "garden/set"}}}
    await standing.ask("patch.seed._.elsewhere", mark)
    assert "marked for removal" in (await standing.refusal("bind", bind_to("elsewhere")))["message"]
    assert (await standing.refusal("bind", bind_to("nowhere")))["code"] == 404
    assert await usage(standing) == {"here": 1}


async def test_a_bind_is_told_as_an_event(standing: Apiserver) -> None:
    await standing.kit.fresh_news()
    await standing.ask("bind", bind_to("there"), user="ann")
    await standing.ask("bind", bind_to("here"), user="bob")

    told = [(news.event.reason, news.event.message) for news in await standing.kit.events()]
    assert told == [
        ("MigrationRequested", 'ann moves the control plane from seed "here" to "there"'),
        ("MigrationTakenBack", 'bob has it stay on seed "here" instead of moving to "there"'),
    ]


async def test_force_restores_without_the_source_and_fences_it_off(standing: Apiserver) -> None:
    error = await standing.refusal("bind", bind_to("there", force=True))
    assert "shootstate garden-dev/apollo is not there" in error["message"]
    await standing.report("here", STATE, a_shoot_state(), verb="apply")
    await standing.until_taken()
    before = await standing.now(APOLLO)
    await standing.kit.fresh_news()
    bound = await standing.ask("bind", bind_to("there", force=True), user="ann")

    assert await seeds(standing) == ("there", "there")
    assert bound["status"]["lastOperation"].items() >= {"type": "Migrate", "state": "Aborted"}.items()
    assert bound["metadata"]["generation"] == before.generation + 1
    assert await usage(standing) == {"there": 1}
    news = await standing.kit.fresh_news()
    assert [entry.left for entry in news if isinstance(entry, ObjectNews) and entry.key == APOLLO] == [("here",)]
    assert [entry.event.reason for entry in news if isinstance(entry, EventNews)] == ["RestorationForced"]

    await reported(standing, "here", {"seedName": "here", **operation("Reconcile", "Succeeded", 100)})
    await reported(standing, "here", {"seedName": "there", **operation("Migrate", "Succeeded", 100)})
    await standing.report("here", STATE, a_shoot_state("stale"), verb="apply")
    await standing.until_taken()
    assert [reason.split(":")[0] for reason in await refused_reports(standing)] == ["Forbidden"] * 3
    assert (await standing.now(STATE)).document()["spec"]["gardener"][0]["name"] == "keys"
    await reported(standing, "there", operation("Restore", "Processing"))
    assert (await standing.now(APOLLO)).document()["status"]["lastOperation"]["type"] == "Restore"


async def test_force_overrules_a_migration_that_is_stuck(standing: Apiserver) -> None:
    await standing.report("here", STATE, a_shoot_state(), verb="apply")
    await standing.ask("bind", bind_to("there"))
    await reported(standing, "here", operation("Migrate", "Processing"))
    await standing.ask("bind", bind_to("there", force=True))
    assert await seeds(standing) == ("there", "there")
    await reported(standing, "there", operation("Restore", "Processing"))
    await standing.ask("bind", bind_to("elsewhere", force=True))
    assert await seeds(standing) == ("elsewhere", "elsewhere")
    assert await usage(standing) == {"elsewhere": 1}


async def test_a_shoot_that_nobody_runs_is_not_restored(standing: Apiserver) -> None:
    await standing.ask("apply", a_shoot("fresh"))
    fresh = bind_to("there", name="fresh", force=True)
    assert "no seed yet" in (await standing.refusal("bind", fresh))["message"]
    await standing.ask("bind", fresh | {"force": False})
    assert "without force" in (await standing.refusal("bind", fresh | {"seed": "here"}))["message"]


async def test_an_older_shoot_state_does_not_come_over_a_newer_one(standing: Apiserver) -> None:
    uid = (await standing.now(APOLLO)).uid
    owner = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": "apollo", "uid": uid}
    for generation in ("2", "1", "3"):
        state = a_shoot_state(f"of-{generation}")
        state["metadata"] |= {
            "annotations": {"shootstate.gardenbus.io/generation": generation},
            "ownerReferences": [owner],
        }
        await standing.report("here", STATE, state, verb="apply")
        await standing.until_taken()
        kept = (await standing.now(STATE)).document()["spec"]["gardener"][0]["name"]
        assert kept == ("of-2" if generation == "1" else f"of-{generation}")
    assert await standing.rejected() == []
    await standing.ask("bind", bind_to("there", force=True))
