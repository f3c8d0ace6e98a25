"""What gardenlets report is taken where they may, newest first, and kept with its reason where they may not."""

from typing import Any

import pytest

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Unavailable
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import NOW, a_cloudprofile, a_condition, a_project, a_seed, a_shoot, a_shoot_state
from tests.support.eventually import HANG_SECONDS

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
SEED = ObjectKey("seed", "", "aws-eu1")
CONFIRM = {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}


@pytest.fixture
async def placed(apiserver: Apiserver) -> Apiserver:
    """A shoot on the seed aws-eu1, not claimed yet."""
    for document in (a_project(), a_cloudprofile(), a_seed(ready=False), a_seed("other", ready=False)):
        await apiserver.request("apply", document)
    await apiserver.request("apply", a_shoot(metadata=CONFIRM, spec={"seedName": "aws-eu1"}))
    return apiserver


async def reported(apiserver: Apiserver, status: Any, *, seed: str = "aws-eu1", **headers: str) -> None:
    uid = (await apiserver.now(APOLLO)).uid
    await apiserver.report(seed, APOLLO, {"status": status}, **{"uid": uid, **headers})
    await apiserver.until_handled()


async def status_of(apiserver: Apiserver, key: ObjectKey = APOLLO) -> dict[str, Any]:
    return (await apiserver.now(key)).document().get("status", {})


async def test_a_gardenlet_claims_its_shoot(placed: Apiserver) -> None:
    await reported(placed, {"seedName": "aws-eu1"})

    assert (await placed.now(APOLLO)).parts.status_seed_name == "aws-eu1"


async def test_another_seeds_gardenlet_is_refused(placed: Apiserver) -> None:
    await reported(placed, {"technicalID": "stolen"}, seed="other")

    assert "belongs to seed aws-eu1" in await placed.reason()
    assert "technicalID" not in await status_of(placed)
    (warning,) = await placed.warnings()
    assert (warning.event.about, warning.event.reason) == (APOLLO, "Forbidden")


async def test_reports_are_merged_and_the_label_follows(placed: Apiserver) -> None:
    await reported(placed, {"lastOperation": {"type": "Create", "state": "Succeeded", "progress": 100}})
    await reported(placed, {"conditions": [a_condition("APIServerAvailable"), a_condition("EveryNodeReady", "False")]})
    document = (await placed.now(APOLLO)).document()

    assert document["status"]["lastOperation"]["progress"] == 100
    assert [condition["type"] for condition in document["status"]["conditions"]] == [
        "APIServerAvailable",
        "EveryNodeReady",
    ]
    assert document["metadata"]["labels"]["shoot.gardener.cloud/status"] == "unhealthy"
    assert document["metadata"]["generation"] == 1


async def test_an_old_report_after_a_newer_one_changes_nothing(idle_apiserver: Apiserver) -> None:
    bus = await idle_apiserver.start()
    for document in (a_project(), a_cloudprofile(), a_seed(ready=False)):
        await idle_apiserver.request("apply", document)
    await idle_apiserver.request("apply", a_shoot(spec={"seedName": "aws-eu1"}))
    await idle_apiserver.contexts.pop().close()
    uid = (await idle_apiserver.now(APOLLO)).uid
    queue = await bus.work_queue(
        idle_apiserver.subjects.stream("REPORTS"), "apiserver", f"{idle_apiserver.subjects.prefix}.report.>"
    )
    await idle_apiserver.report("aws-eu1", APOLLO, {"status": {"lastOperation": {"progress": 10}}}, uid=uid)
    (held,) = await queue.fetch(1, HANG_SECONDS)
    await idle_apiserver.start()
    await idle_apiserver.report("aws-eu1", APOLLO, {"status": {"lastOperation": {"progress": 90}}}, uid=uid)
    await idle_apiserver.kit.store.get(APOLLO)
    await held.release()
    await idle_apiserver.until_handled()

    assert (await status_of(idle_apiserver))["lastOperation"] == {"progress": 90}


async def test_a_report_that_changes_nothing_counts_when_what_was_read_does(
    placed: Apiserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems, confirmed = [Unavailable("0 of 1 Redis replicas have it")], list[bool]()

    async def confirm_reads() -> None:
        if problems:
            raise problems.pop()
        confirmed.append(True)

    monkeypatch.setattr(placed.kit.store, "confirm_reads", confirm_reads)
    await placed.report("aws-eu1", ObjectKey("shoot", "garden-dev", "gone"), {"status": {}}, uid="1")
    await placed.until_handled()

    assert confirmed


async def test_a_redelivered_registration_does_not_raise_a_seed_that_was_removed(idle_apiserver: Apiserver) -> None:
    bus = await idle_apiserver.start()
    await idle_apiserver.request("apply", a_project())
    await idle_apiserver.contexts.pop().close()
    queue = await bus.work_queue(
        idle_apiserver.subjects.stream("REPORTS"), "apiserver", f"{idle_apiserver.subjects.prefix}.report.>"
    )
    await idle_apiserver.report("aws-eu1", SEED, a_seed(ready=False), verb="apply")
    (held,) = await queue.fetch(1, HANG_SECONDS)
    await held.release()
    await idle_apiserver.start()
    await idle_apiserver.until_handled()
    assert await idle_apiserver.kit.store.get(SEED) is None
    assert await idle_apiserver.rejected() == []

    await idle_apiserver.report("aws-eu1", SEED, a_seed(ready=False), verb="apply")
    await idle_apiserver.until_handled()
    assert await idle_apiserver.kit.store.get(SEED) is not None


async def test_what_was_observed_never_falls(placed: Apiserver) -> None:
    for generation in (3, 2, None):
        await reported(placed, {"observedGeneration": generation})
    await placed.until_handled()

    assert (await status_of(placed))["observedGeneration"] == 3


async def test_a_replaced_gardenlet_is_not_heard_any_more(placed: Apiserver) -> None:
    await reported(placed, {"technicalID": "new"}, fence="100.7")
    await reported(placed, {"technicalID": "old"}, fence="100.6")

    assert (await status_of(placed))["technicalID"] == "new"
    assert "100.6" in await placed.reason()


FENCELESS_REPORTS: list[tuple[ObjectKey, Any, dict[str, str]]] = [
    (APOLLO, {"status": {"technicalID": "forged"}}, {}),
    (SEED, {"status": {"allocatable": {"shoots": 9999}}}, {}),
    (SEED, a_seed(ready=False, metadata={"labels": {"forged": "1"}}), {"verb": "apply"}),
    (SEED, b"", {"verb": "delete"}),
    (SEED, {"type": "Normal", "reason": "Forged"}, {"verb": "event"}),
    (ObjectKey("shootstate", "garden-dev", "apollo"), a_shoot_state(), {"verb": "apply"}),
    (APOLLO, b"", {"question": "exists"}),
    (APOLLO, b"", {"question": "gone", "sequence": "1"}),
]


async def test_once_a_seed_is_fenced_no_report_without_a_fence_counts(placed: Apiserver) -> None:
    await reported(placed, {"technicalID": "own"}, fence="100.7")
    before = {key: (await placed.now(key)).version for key in (APOLLO, SEED)}
    for key, body, headers in FENCELESS_REPORTS:
        await placed.report("aws-eu1", key, body, **headers)
    await placed.until_handled()

    rejected = await placed.rejected()
    assert [message.headers["Gardenbus-Reason"] for message in rejected] == [
        "Forbidden: Gardenbus-Fence: is needed, for the gardenlet of seed aws-eu1 has sent one before"
    ] * len(FENCELESS_REPORTS)
    assert {key: (await placed.now(key)).version for key in before} == before
    assert await placed.kit.store.get(ObjectKey("shootstate", "garden-dev", "apollo")) is None


async def test_a_fence_of_one_seed_asks_none_of_another(placed: Apiserver) -> None:
    await placed.report("other", ObjectKey("seed", "", "other"), {"status": {}}, fence="100.7")
    await reported(placed, {"technicalID": "foreign"})

    assert (await status_of(placed))["technicalID"] == "foreign"
    assert await placed.rejected() == []


async def test_more_allocatable_than_capacity_is_refused(placed: Apiserver) -> None:
    await placed.report("aws-eu1", SEED, {"status": {"capacity": {"shoots": 20, "cpu": "8"}}})
    await placed.report("aws-eu1", SEED, {"status": {"allocatable": {"shoots": 20, "cpu": "8001m", "disks": 5}}})

    assert "status.allocatable.cpu: 8001m is more than the capacity of 8" in await placed.reason()
    assert (await status_of(placed, SEED)).get("allocatable", {}).get("cpu") is None


async def test_a_report_on_an_object_that_was_created_anew_is_refused(placed: Apiserver) -> None:
    await reported(placed, {"technicalID": "x"}, uid="00000000-0000-0000-0000-000000000000")

    assert "another uid" in await placed.reason()


async def test_the_finalizer_goes_with_the_last_report(placed: Apiserver) -> None:
    await reported(placed, {"seedName": "aws-eu1", "technicalID": "shoot--dev--apollo"})
    await placed.request("delete.shoot.garden-dev.apollo")
    await reported(placed, {"lastOperation": {"type": "Delete", "state": "Succeeded", "progress": 100}})

    assert await placed.kit.store.get(APOLLO) is None
    assert await placed.kit.store.shoots_on("aws-eu1") == []


async def test_a_gardenlet_keeps_its_own_seed(placed: Apiserver) -> None:
    await placed.report("aws-eu1", SEED, {"status": {"conditions": [a_condition("GardenletReady")]}})
    await placed.report("aws-eu1", SEED, a_seed(ready=False, metadata={"labels": {"mine": "1"}}), verb="apply")
    await placed.until_handled()

    document = (await placed.now(SEED)).document()
    assert document["status"]["conditions"][0]["type"] == "GardenletReady"
    assert document["metadata"]["labels"]["mine"] == "1"


@pytest.mark.parametrize(
    ("key", "body", "headers"),
    [
        (ObjectKey("seed", "", "other"), {"status": {}}, {}),
        (ObjectKey("seed", "", "other"), a_seed("other"), {"verb": "apply"}),
        (SEED, a_seed("other"), {"verb": "apply"}),
        (ObjectKey("cloudprofile", "", "aws"), a_cloudprofile(), {"verb": "apply"}),
        (APOLLO, a_shoot(), {"verb": "apply"}),
        (ObjectKey("seed", "", "other"), {}, {"verb": "delete"}),
        (APOLLO, {}, {"verb": "delete"}),
        (ObjectKey("seed", "", "other"), {"type": "Normal", "reason": "x"}, {"verb": "event"}),
        (ObjectKey("shoot", "garden-dev", "nobody"), {"status": {}}, {}),
        (APOLLO, {"status": {"seedName": "other"}}, {}),
        (APOLLO, {"status": {"conditions": "all well"}}, {}),
        (APOLLO, {"status": {"conditions": [{"type": "APIServerAvailable", "status": "maybe"}]}}, {}),
        (APOLLO, {"status": {"lastOperation": {"type": "Create", "state": "Processing", "progress": "half"}}}, {}),
        (APOLLO, {"status": {"lastErrors": [5]}}, {}),
        (SEED, {"status": {"allocatable": {"shoots": "many"}}}, {}),
        (SEED, {"status": {"capacity": {"shoots": -1}}}, {}),
        (SEED, {"status": {"clientCertificateExpirationTimestamp": "tomorrow"}}, {}),
        (APOLLO, b"\xff", {}),
        (APOLLO, [1], {}),
        (APOLLO, {"status": {}}, {"verb": "conquer"}),
        (APOLLO, {"status": {}}, {"fence": "nonsense"}),
        (ObjectKey("project", "", "dev"), {"status": {}}, {}),
    ],
)
async def test_what_a_gardenlet_may_not_say_is_kept(
    placed: Apiserver, key: ObjectKey, body: Any, headers: dict[str, str]
) -> None:
    await placed.report("aws-eu1", key, body, **headers)
    await reported(placed, {"technicalID": "after"})

    assert "HandlerFailed" not in await placed.reason()
    assert (await status_of(placed))["technicalID"] == "after"


async def test_a_report_that_cannot_be_read_is_an_event_on_what_its_subject_names(placed: Apiserver) -> None:
    await placed.kit.fresh_entries()
    await placed.report("aws-eu1", SEED, b"\xff")
    await placed.until_handled()

    (warning,) = await placed.warnings()
    assert (warning.event.about, warning.event.reason) == (SEED, "BadRequest")


async def test_a_gardenlet_raises_events_on_what_is_its_own(placed: Apiserver) -> None:
    await placed.kit.fresh_entries()
    await placed.report("aws-eu1", APOLLO, {"type": "Warning", "reason": "Slow", "message": "so slow"}, verb="event")
    await placed.until_handled()

    (warning,) = await placed.warnings()
    assert (warning.event.reason, warning.event.reporter) == ("Slow", "gardenlet-aws-eu1")


async def test_a_question_has_the_binding_announced_again(placed: Apiserver) -> None:
    await placed.kit.fresh_entries()
    await placed.report("aws-eu1", APOLLO, b"", question="exists")
    await placed.until_handled()

    (entry,) = await placed.kit.changes()
    assert (entry.key, entry.verb, entry.left) == (APOLLO, "modified", ("aws-eu1",))


async def test_a_question_about_what_is_elsewhere_is_not_told_from_one_about_nothing(placed: Apiserver) -> None:
    await placed.request("apply", a_seed("aws-eu2", ready=False))
    await placed.kit.fresh_entries()
    for key in (APOLLO, SEED):
        await placed.report("aws-eu2", key, b"", question="exists")
    await placed.report("aws-eu2", ObjectKey("shoot", "garden-dev", "nobody"), b"", question="exists")
    await placed.until_handled()

    warnings = await placed.warnings()
    assert await placed.kit.changes() == []
    assert {warning.event.about.name for warning in warnings} == {"aws-eu2"}
    assert {warning.event.reason for warning in warnings} == {"ObjectUnknown"}


async def test_a_question_for_what_nobody_remembers_is_an_event_on_the_seed_and_ends_nothing(placed: Apiserver) -> None:
    nobody = ObjectKey("shoot", "garden-dev", "nobody")
    await placed.kit.fresh_entries()
    await placed.report("aws-eu1", nobody, b"", question="exists", uid="of-a-newer-store")
    await placed.until_handled()

    (warning,) = await placed.warnings()
    assert (warning.event.about, warning.event.reason) == (SEED, "ObjectUnknown")
    assert "garden-dev/nobody runs here" in warning.event.message
    assert [entry for entry in await placed.kit.changes() if entry.key == nobody] == []


async def test_what_nobody_remembers_is_adopted_as_its_gardenlet_holds_it_or_forgotten(placed: Apiserver) -> None:
    uid, held = (
        "00000000-0000-4000-8000-000000000007",
        a_shoot("nobody", spec={"seedName": "aws-eu1"}, status={"observedGeneration": 2}),
    )
    held["metadata"] |= {"uid": uid, "generation": 2, "creationTimestamp": NOW, "finalizers": ["gardener"]}
    nobody, tail = ObjectKey("shoot", "garden-dev", "nobody"), "shoot.garden-dev.nobody"
    body = {"seed": "aws-eu1"}
    assert (await placed.rejection(f"adopt.{tail}", body))["code"] == 404
    assert (await placed.rejection(f"forget.{tail}", body))["code"] == 404
    await placed.report("aws-eu1", nobody, held, question="exists", uid=uid)
    await placed.until_handled()
    (unknown,) = (await placed.request("unknown"))["items"]
    assert (unknown["name"], unknown["seed"], unknown["adoptable"]) == ("nobody", "aws-eu1", True)
    for verb in ("adopt", "forget"):
        assert (await placed.response(f"{verb}.{tail}", body, dry_run="true"))["ok"]
    assert await placed.kit.store.get(nobody) is None

    for _ in range(2):
        adopted = await placed.request(f"adopt.{tail}", body)
        assert (adopted["metadata"]["uid"], adopted["metadata"]["generation"]) == (uid, 2)
        assert adopted["status"] == {"observedGeneration": 2, "seedName": "aws-eu1"}
    assert (await placed.request("unknown"))["items"] == []
    assert (await placed.rejection(f"forget.{tail}", body))["code"] == 409
    assert (await placed.rejection("adopt.seed.aws-eu1", body))["code"] == 400

    other = ObjectKey("shoot", "garden-dev", "other")
    await placed.report("aws-eu1", other, b"no manifest", question="exists", uid="u")
    await placed.until_handled()
    assert await placed.rejected() == []
    await placed.kit.fresh_entries()
    for _ in range(2):
        await placed.request("forget.shoot.garden-dev.other", body)
    changes = await placed.kit.changes()
    assert [(each.key, each.uid, each.verb, each.left) for each in changes] == [
        (other, "u", "deleted", ("aws-eu1",))
    ] * 2


async def test_many_reports_on_one_object_are_few_writes(placed: Apiserver) -> None:
    uid = (await placed.now(APOLLO)).uid
    before = (await placed.now(APOLLO)).version
    for progress in range(99):
        await placed.client.publish(
            placed.subjects.report("aws-eu1", APOLLO),
            b'{"status":{"lastOperation":{"progress":%d}}}' % progress,
            headers={"Gardenbus-Uid": uid},
        )
    await placed.report("aws-eu1", APOLLO, {"status": {"lastOperation": {"progress": 99}}}, uid=uid)
    await placed.until_handled()

    assert (await status_of(placed))["lastOperation"]["progress"] == 99
    assert (await placed.now(APOLLO)).version - before < 100


async def test_a_shoot_state_is_kept_by_the_seed_of_its_shoot(placed: Apiserver) -> None:
    key = ObjectKey("shootstate", "garden-dev", "apollo")
    state: Any = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "ShootState",
        "metadata": {"name": "apollo", "namespace": "garden-dev"},
        "spec": {"gardener": []},
    }
    await placed.report("other", key, state, verb="apply")
    assert "not on seed other" in await placed.reason()
    await placed.report("aws-eu1", key, state, verb="apply")
    await placed.until_handled()

    assert (await placed.now(key)).document()["spec"] == {"gardener": []}
