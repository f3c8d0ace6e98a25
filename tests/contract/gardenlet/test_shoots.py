"""A gardenlet carries its shoots out: built, reconciled, retried, given up, taken down."""

import asyncio

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.ports.bus import StreamMessage
from gardenbus.gardenlet.domain.flows import shoot_flow
from tests.support.builders import a_shoot
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.gardenlets import Garden, a_configuration, conditions

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
NAME = ("garden-dev", "apollo")
SEED = ObjectKey("seed", "", "aws-eu1")
FAIL = "local.backend.gardenbus.io/fail"
UNHEALTHY = "local.backend.gardenbus.io/unhealthy"


async def until_recorded(garden: Garden, *reasons: str) -> None:
    """Wait until the Events of the shoot have these reasons, one after the other."""
    found: list[str] = []
    async with asyncio.timeout(HANG_SECONDS):
        async with garden.bus.follow(garden.subjects.stream("EVENTS"), [garden.subjects.event(APOLLO)]) as follower:
            async for each in follower:
                if isinstance(each, StreamMessage):
                    found.append(msgspec.json.decode(each.body)["reason"])
                if found[-len(reasons) :] == list(reasons):
                    return


async def warned(garden: Garden, reason: str) -> None:
    message = await garden.bus.last(garden.subjects.stream("EVENTS"), garden.subjects.event(APOLLO))
    assert message is not None
    event: Document = msgspec.json.decode(message.body)
    assert (event["type"], event["reason"]) == ("Warning", reason)


def failing(text: str) -> dict[str, object]:
    return a_shoot(metadata={"annotations": {FAIL: text}})


async def end_failure(garden: Garden, step: str) -> None:
    """Let a step fail no more: until then whoever waits for the failure sees it, however late it looks."""
    await garden.change(APOLLO, metadata={"annotations": {FAIL: f"{step}=ERR_INFRA_RESOURCES_DEPLETED,times=0"}})


async def test_a_placed_shoot_is_claimed_built_and_reported(garden: Garden) -> None:
    host = await garden.start(a_configuration())
    await garden.place()
    shoot = await garden.until_state("Succeeded", operation="Create")

    status = shoot["status"]
    assert status["seedName"] == "aws-eu1"
    assert status["technicalID"] == "shoot--dev--apollo"
    assert status["uid"] == shoot["metadata"]["uid"]
    assert status["observedGeneration"] == shoot["metadata"]["generation"]
    assert status["lastOperation"]["progress"] == 100
    assert "lastErrors" not in status
    assert conditions(shoot) == dict.fromkeys(
        [
            "APIServerAvailable",
            "ControlPlaneHealthy",
            "ObservabilityComponentsHealthy",
            "EveryNodeReady",
            "SystemComponentsHealthy",
        ],
        "True",
    )
    assert conditions(shoot, "constraints") == {
        "HibernationPossible": "True",
        "MaintenancePreconditionsSatisfied": "True",
    }
    record = host.gardenlets["aws-eu1"].backend.load(("garden-dev", "apollo"))
    assert record is not None
    assert record.applied == dict.fromkeys(shoot_flow("Create", has_workers=True).steps, 1)


async def test_a_shoot_whose_claim_the_store_has_lost_is_reported_in_full(garden: Garden) -> None:
    host = await garden.start(a_configuration())
    await garden.place()
    before = await garden.until_state("Succeeded", operation="Create")
    await garden.stop(host)
    await garden.change(APOLLO, status=None)
    await garden.start(a_configuration())
    after = await garden.until_state("Succeeded", operation="Create")
    assert conditions(after) == conditions(before)
    assert after["status"]["observedGeneration"] == before["status"]["observedGeneration"]
    assert after["status"]["seedName"] == "aws-eu1"


async def test_a_shoot_without_workers_has_no_nodes(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.place(shoot=a_shoot(spec={"provider": {"type": "aws", "workers": []}}))
    shoot = await garden.until_state("Succeeded")

    assert "EveryNodeReady" not in conditions(shoot)


async def test_progress_only_grows(garden: Garden) -> None:
    await garden.start(a_configuration(backend={"stepSeconds": 0.05}))
    await garden.place()
    seen: list[int] = []

    async def done() -> None:
        operation = section(await garden.shoot(), "status", "lastOperation")
        seen.append(operation.get("progress", 0))
        assert operation.get("state") == "Succeeded"

    await eventually(done, every=0.01)
    assert seen == sorted(seen)
    assert len(set(seen)) > 4


async def test_a_new_generation_is_reconciled_once(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    await garden.change(APOLLO, spec={"kubernetes": {"version": "1.35.0"}})

    async def reconciled() -> None:
        shoot = await garden.shoot()
        assert shoot["status"]["observedGeneration"] == shoot["metadata"]["generation"]
        assert shoot["status"]["lastOperation"]["type"] == "Reconcile"
        assert shoot["status"]["lastOperation"]["state"] == "Succeeded"

    await eventually(reconciled)


async def test_a_reconciled_shoot_is_synced_after_its_period(garden: Garden) -> None:
    await garden.start(a_configuration(controllers={"shoot": {"syncPeriod": "2s"}}))
    await garden.place()
    await garden.until_state("Succeeded", operation="Create")

    await garden.until_state("Succeeded", operation="Reconcile")
    assert set(conditions(await garden.shoot()).values()) == {"True"}


async def test_a_failure_that_passes_is_tried_again_where_it_stood(garden: Garden) -> None:
    host = await garden.start(a_configuration())
    await garden.place(shoot=failing("infrastructure=ERR_INFRA_RESOURCES_DEPLETED"))
    shoot = await garden.until_state("Error")

    operation = shoot["status"]["lastOperation"]
    assert operation["description"].endswith("Operation will be retried.")
    (error,) = shoot["status"]["lastErrors"]
    assert error["codes"] == ["ERR_INFRA_RESOURCES_DEPLETED"]
    await eventually(lambda: warned(garden, "ReconcileError"))
    await end_failure(garden, "infrastructure")
    shoot = await garden.until_state("Succeeded")
    assert "lastErrors" not in shoot["status"]
    record = host.gardenlets["aws-eu1"].backend.load(("garden-dev", "apollo"))
    assert record is not None
    assert set(record.applied.values()) == {1}


async def test_a_failure_for_good_waits_for_a_person(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.place(shoot=failing("infrastructure=ERR_INFRA_QUOTA_EXCEEDED,times=1"))
    shoot = await garden.until_state("Failed")
    assert not shoot["status"]["lastOperation"]["description"].endswith("retried.")
    await asyncio.sleep(2.5)
    assert (await garden.shoot())["status"]["lastOperation"] == shoot["status"]["lastOperation"]

    await request_operation(garden, "retry")
    await garden.until_state("Succeeded", operation="Create")


async def request_operation(garden: Garden, operation: str) -> None:
    patch = {"metadata": {"annotations": {"gardener.cloud/operation": operation}}}
    response = await garden.bus.request(
        garden.subjects.api("patch.shoot.garden-dev.apollo"), msgspec.json.encode(patch)
    )
    assert msgspec.json.decode(response)["ok"], response


async def test_a_reconciled_shoot_is_reconciled_on_request(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded", operation="Create")
    await request_operation(garden, "reconcile")

    shoot = await garden.until_state("Succeeded", operation="Reconcile")
    assert "gardener.cloud/operation" not in section(shoot, "metadata", "annotations")


async def test_trying_ends_after_the_retry_duration(garden: Garden) -> None:
    await garden.start(a_configuration(controllers={"shoot": {"retryDuration": "1s"}}))
    await garden.place(shoot=failing("etcd=ERR_INFRA_RESOURCES_DEPLETED"))

    await garden.until_state("Failed")


async def test_a_deleted_shoot_is_torn_down_and_leaves_nothing(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    await garden.delete(APOLLO)
    await garden.until_gone(APOLLO)

    async def nothing_left() -> None:
        assert list((garden.directory / "aws-eu1" / "shoots").iterdir()) == []

    await eventually(nothing_left)
    await until_recorded(garden, "Reconciling", "Reconciled", "Deleting", "Deleted")


async def test_the_end_of_a_deletion_is_reported_once_whatever_is_observed_meanwhile(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    await garden.delete(APOLLO)
    await garden.until_state("Processing", operation="Delete")
    await garden.change(APOLLO, metadata={"annotations": {"somebody": "hurries"}})
    await garden.until_gone(APOLLO)

    async def nothing_left() -> None:
        assert list((garden.directory / "aws-eu1" / "shoots").iterdir()) == []

    await eventually(nothing_left)
    assert await garden.rejected() is None


async def test_a_shoot_deleted_while_it_fails_is_torn_down(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.place(shoot=failing("etcd=ERR_INFRA_QUOTA_EXCEEDED"))
    await garden.until_state("Failed")
    await garden.delete(APOLLO)

    await garden.until_gone(APOLLO)


async def test_a_failing_deletion_keeps_the_shoot(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.place(shoot=failing("delete-infrastructure=ERR_CLEANUP_CLUSTER_RESOURCES"))
    await garden.until_state("Succeeded")
    await garden.delete(APOLLO)
    await garden.until_state("Error", operation="Delete")

    await end_failure(garden, "delete-infrastructure")
    await garden.until_gone(APOLLO)


async def test_a_shoot_recreated_under_its_name_is_built_anew(garden: Garden) -> None:
    host = await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    await garden.delete(APOLLO)
    await garden.until_gone(APOLLO)
    await garden.place()
    shoot = await garden.until_state("Succeeded", operation="Create")

    record = host.gardenlets["aws-eu1"].backend.load(("garden-dev", "apollo"))
    assert record is not None
    assert record.uid == shoot["metadata"]["uid"]
    assert set(record.applied.values()) == {1}


async def test_no_more_shoots_are_in_work_than_may_be(garden: Garden) -> None:
    host = await garden.start(
        a_configuration(controllers={"shoot": {"concurrentSyncs": 3}}, backend={"stepSeconds": 0.02})
    )
    names = [f"s{number}" for number in range(12)]
    for name in names:
        await garden.place(shoot=a_shoot(name))
    most = 0

    async def all_done() -> None:
        nonlocal most
        most = max(most, host.gardenlets["aws-eu1"].queue.in_flight)
        for name in names:
            operation = section(await garden.shoot(name), "status", "lastOperation")
            assert operation.get("state") == "Succeeded"

    await eventually(all_done, every=0.01)
    assert 1 < most <= 3


async def test_care_reports_what_is_wrong_with_a_shoot(garden: Garden) -> None:
    await garden.start(a_configuration(controllers={"shootCare": {"syncPeriod": "300ms"}}))
    await garden.place()
    await garden.until_state("Succeeded")
    await garden.change(APOLLO, metadata={"annotations": {UNHEALTHY: "EveryNodeReady=Node 3 does not respond."}})

    async def observed(status: str) -> None:
        assert conditions(await garden.shoot())["EveryNodeReady"] == status

    await eventually(lambda: observed("False"))
    await garden.change(APOLLO, metadata={"annotations": {UNHEALTHY: ""}})
    await eventually(lambda: observed("True"))


async def test_an_emergency_stop_holds_everything_until_it_is_lifted(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    stop = "shoot.gardener.cloud/emergency-stop-reconciliations"
    await garden.change(SEED, metadata={"annotations": {stop: "true"}})

    async def noticed() -> None:
        assert conditions(await garden.seed()).get("EmergencyStopShootReconciliations") == "True"

    await eventually(noticed)
    await garden.change(APOLLO, spec={"kubernetes": {"version": "1.35.0"}})
    await asyncio.sleep(1)
    assert (await garden.shoot())["status"]["observedGeneration"] == 2
    await garden.change(SEED, metadata={"annotations": {stop: "false"}})

    await garden.until_state("Succeeded", operation="Reconcile")


async def test_a_shoot_that_is_kept_but_not_observed_is_queried_and_goes_only_after_a_tombstone(garden: Garden) -> None:
    host = await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    await garden.kill(host)
    binding = garden.subjects.binding("aws-eu1", "garden-dev", "apollo")
    await garden.bus.purge(garden.subjects.stream("BINDINGS"), binding)
    host = await garden.start(a_configuration())

    async def observed_again() -> None:
        assert host.gardenlets["aws-eu1"].cache.shoot(("garden-dev", "apollo")) is not None

    await eventually(observed_again)
    assert host.gardenlets["aws-eu1"].backend.load(("garden-dev", "apollo")) is not None


async def test_a_tombstone_tears_down_what_is_kept(garden: Garden) -> None:
    host = await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    await garden.publish(
        garden.subjects.binding("aws-eu1", "garden-dev", "apollo"), b"", {Header.VERB: "deleted", Header.VERSION: "99"}
    )

    async def torn_down() -> None:
        assert host.gardenlets["aws-eu1"].backend.shoots() == []

    await eventually(torn_down)


async def test_a_tombstone_of_an_earlier_shoot_of_that_name_tears_nothing_down_and_is_asked_about(
    garden: Garden,
) -> None:
    """A restored store remembers the removal of the earlier one, and has never heard of the one that runs."""
    host = await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    running = host.gardenlets["aws-eu1"].backend.load(("garden-dev", "apollo"))
    assert running is not None
    earlier = {Header.VERB: "deleted", Header.VERSION: "3", Header.UID: "00000000-0000-4000-8000-00000000dead"}
    subject = garden.subjects.binding("aws-eu1", "garden-dev", "apollo")
    await garden.publish(subject, b"", earlier)

    async def announced_again() -> None:
        last = await garden.bus.last(garden.subjects.stream("BINDINGS"), subject)
        assert last is not None
        assert last.headers.get(Header.UID) == running.uid, "it has not asked yet"

    await eventually(announced_again)
    kept = host.gardenlets["aws-eu1"].backend.load(("garden-dev", "apollo"))
    assert kept is not None
    assert (kept.uid, kept.applied) == (running.uid, running.applied)


async def test_a_binding_of_an_earlier_shoot_in_a_replay_tears_nothing_down_and_is_asked_about(garden: Garden) -> None:
    """NATS went back to before the shoot that runs: its stream shows the one that had the name before."""
    host = await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    subject, stream = garden.subjects.binding("aws-eu1", "garden-dev", "apollo"), garden.subjects.stream("BINDINGS")
    shown = await garden.bus.last(stream, subject)
    running = host.gardenlets["aws-eu1"].backend.load(("garden-dev", "apollo"))
    assert shown is not None
    assert running is not None
    await garden.stop(host)
    earlier = "00000000-0000-4000-8000-00000000dead"
    body = shown.body.replace(running.uid.encode(), earlier.encode())
    headers = {name: value for name, value in shown.headers.items() if not name.startswith("Nats-")}
    await garden.publish(subject, body, {**headers, Header.UID: earlier, Header.VERSION: "3"})
    host = await garden.start(a_configuration())

    async def announced_again() -> None:
        last = await garden.bus.last(stream, subject)
        assert last is not None
        assert last.headers.get(Header.UID) == running.uid, "it has not asked yet"

    await eventually(announced_again)
    kept = host.gardenlets["aws-eu1"].backend.load(("garden-dev", "apollo"))
    assert kept is not None
    assert (kept.uid, kept.applied) == (running.uid, running.applied)


async def tombstones(garden: Garden) -> list[str]:
    stream = garden.subjects.stream("BINDINGS")
    return list(await garden.bus.subjects(stream, garden.subjects.bindings_of("aws-eu1")))


async def test_a_tombstone_goes_when_it_has_been_obeyed(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    await garden.delete(APOLLO)
    await garden.until_gone(APOLLO)

    async def purged() -> None:
        assert await tombstones(garden) == []

    await eventually(purged)


async def test_a_tombstone_of_a_shoot_that_was_never_here_goes_too(garden: Garden) -> None:
    await garden.publish(
        garden.subjects.binding("aws-eu1", "garden-dev", "never"), b"", {Header.VERB: "deleted", Header.VERSION: "99"}
    )
    await garden.start(a_configuration())

    async def purged() -> None:
        assert await tombstones(garden) == []

    await eventually(purged)


async def test_an_obeyed_tombstone_takes_no_later_binding_with_it(garden: Garden) -> None:
    subject = garden.subjects.binding("aws-eu1", "garden-dev", "apollo")
    stream = garden.subjects.stream("BINDINGS")
    report = garden.subjects.report("aws-eu1", APOLLO)
    await garden.publish(subject, b"", {Header.VERB: "deleted", Header.VERSION: "9"})
    tombstone = await garden.bus.last(stream, subject)
    assert tombstone is not None
    await garden.publish(subject, b"{}", {Header.ROLE: "run", Header.VERSION: "10"})
    for sequence in (tombstone.sequence, tombstone.sequence + 1, tombstone.sequence + 100):
        await garden.publish(report, b"{}", {Header.QUERY: "gone", Header.SEQUENCE: str(sequence)})
    await garden.publish(report, b"{}", {Header.QUERY: "gone", Header.SEQUENCE: "-1"})

    async def the_last_was_accepted() -> None:
        rejected = await garden.rejected()
        assert rejected is not None
        assert Header.SEQUENCE in rejected.headers[Header.REASON]

    await eventually(the_last_was_accepted)
    assert await tombstones(garden) == [subject]


async def test_a_standby_that_missed_an_obeyed_tombstone_builds_nothing(garden: Garden) -> None:
    host = await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    standby = await garden.start(a_configuration())
    gardenlet = standby.gardenlets["aws-eu1"]

    async def observed() -> None:
        assert gardenlet.cache.shoot(NAME) is not None

    await eventually(observed)
    gardenlet.deliver = lambda message: None  # it does not hear what follows
    await garden.delete(APOLLO)
    await garden.until_gone(APOLLO)

    async def purged() -> None:
        assert await tombstones(garden) == []

    await eventually(purged)
    await garden.stop(host)

    async def active() -> None:
        assert gardenlet.is_active

    await eventually(active)
    await asyncio.sleep(0.5)
    assert gardenlet.cache.shoots == {}
    assert gardenlet.backend.shoots() == []


async def test_what_cannot_be_read_does_not_stop_the_others(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.until_ready()
    for name, body in (("broken", b"{"), ("list", b"[]"), ("empty", b"{}")):
        await garden.publish(garden.subjects.binding("aws-eu1", "garden-dev", name), body, {Header.ROLE: "run"})
    await garden.place()

    await garden.until_state("Succeeded")


async def test_a_deletion_that_is_forced_leaves_out_the_infrastructure_and_ends(garden: Garden) -> None:
    await garden.start(a_configuration())
    await garden.place(shoot=failing("delete-infrastructure=ERR_INFRA_UNAUTHORIZED"))
    await garden.until_state("Succeeded")
    await garden.delete(APOLLO)
    failed = await garden.until_state("Failed", operation="Delete")
    assert failed["status"]["lastErrors"][0]["codes"] == ["ERR_INFRA_UNAUTHORIZED"]
    annotations = {"confirmation.gardener.cloud/force-deletion": "true"}
    await garden.change(APOLLO, bump_generation=True, metadata={"annotations": annotations})
    await garden.until_gone(APOLLO)
