"""Member agents on real NATS, with the real apiserver and relay."""

import asyncio

from structlog.testing import capture_logs

from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.fleet.member_clusters import AGENT_CLEANUP, MemberCluster
from gardenbus.common.api.fleet.works import ABANDON
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.memberagent.backend.records import REGISTERED
from gardenbus.memberagent.controllers.member_cluster import RETRY_SECONDS
from tests.support.builders import a_seed
from tests.support.eventually import eventually
from tests.support.gardenlets import Garden
from tests.support.member_agents import (
    a_manifest,
    a_member_cluster,
    a_work,
    an_agent_configuration,
    cluster_key,
    member_agents,
    until_condition,
    work_key,
)

LISBON = an_agent_configuration(a_member_cluster())


def held(garden: Garden, cluster: str = "lisbon") -> set[str]:
    """The files of the manifests in a cluster."""
    return {file.name.split(",")[0] for file in (garden.directory / cluster / "manifests").glob("*.json")}


async def until_joined(garden: Garden, name: str = "lisbon") -> MemberCluster:
    """Wait until a cluster is in the fleet."""
    return MemberCluster.from_document(
        await until_condition(garden, cluster_key(name), "Joined", "True", "MemberAgentJoined")
    )


async def test_a_cluster_registers_joins_and_reports_its_properties_with_each_heartbeat(garden: Garden) -> None:
    async with member_agents(garden, LISBON):
        cluster = await until_joined(garden)
        assert cluster.agent is not None
        assert {each.type: each.status for each in cluster.agent.conditions} == {"Joined": "True", "Healthy": "True"}
        assert cluster.status.properties["kubernetes-fleet.io/node-count"].value == "4"
        assert cluster.status.resource_usage.available == {"cpu": "9"}
        assert AGENT_CLEANUP in cluster.metadata.finalizers
        first = cluster.agent.last_received_heartbeat

        async def beats() -> None:
            agent = (await until_joined(garden)).agent
            assert agent is not None
            assert agent.last_received_heartbeat > first

        await eventually(beats, every=0.1)


async def test_a_work_is_applied_changed_and_removed(garden: Garden) -> None:
    async with member_agents(garden, LISBON):
        await until_joined(garden)
        await garden.store.create(a_work(a_manifest("Namespace", "shop"), a_manifest()))
        await until_condition(garden, work_key(), "Applied", "True", "AllManifestsApplied")
        await until_condition(garden, work_key(), "Available", "True", "AllManifestsAvailable")
        assert held(garden) == {"Namespace", "ConfigMap"}

        async def namespace_is_reported() -> None:
            assert (await until_joined(garden)).status.namespaces == {"shop": "shop-work"}

        await eventually(namespace_is_reported, every=0.1)
        await garden.change(work_key(), bump_generation=True, spec={"workload": {"manifests": [a_manifest("Secret")]}})

        async def changed() -> None:
            assert held(garden) == {"Secret"}
            conditions = section(await garden.get(work_key()), "status")["conditions"]
            assert {each["observedGeneration"] for each in conditions} == {2}

        await eventually(changed, every=0.1)
        await garden.delete(work_key())
        await until_condition(garden, work_key(), "Applied", "False", "ManifestsDeleted")
        assert held(garden) == set()


async def test_an_abandoned_work_goes_and_its_manifests_stay(garden: Garden) -> None:
    async with member_agents(garden, LISBON):
        await until_joined(garden)
        await garden.store.create(a_work(a_manifest("Namespace", "shop"), a_manifest()))
        await until_condition(garden, work_key(), "Applied", "True", "AllManifestsApplied")
        await garden.change(work_key(), metadata={"annotations": {ABANDON: "true"}})
        await garden.delete(work_key())
        await until_condition(garden, work_key(), "Applied", "False", "ManifestsDeleted")
        assert held(garden) == {"Namespace", "ConfigMap"}

        async def namespace_belongs_to_no_work() -> None:
            assert (await until_joined(garden)).status.namespaces == {"shop": ""}

        await eventually(namespace_belongs_to_no_work, every=0.1)


async def test_a_failure_that_was_injected_is_reported_and_tried_again(garden: Garden) -> None:
    def failing(times: str) -> Document:
        return a_manifest(metadata={"annotations": {"local.backend.gardenbus.io/fail": f"apply=lisbon{times}"}})

    async with member_agents(garden, LISBON):
        await until_joined(garden)
        await garden.store.create(a_work(failing("")))
        work = await until_condition(garden, work_key(), "Applied", "False", "SomeManifestsAreNotApplied")
        (condition,) = section(work, "status")["manifestConditions"]
        assert condition["identifier"]["kind"] == "ConfigMap"
        fails_no_more = {"workload": {"manifests": [failing(",times=0")]}}
        await garden.change(work_key(), bump_generation=True, spec=fails_no_more)
        await until_condition(garden, work_key(), "Applied", "True", "AllManifestsApplied")


async def test_what_has_to_start_is_available_after_a_while(garden: Garden) -> None:
    async with member_agents(garden, an_agent_configuration(a_member_cluster(), backend={"availableSeconds": 1})):
        await until_joined(garden)
        await garden.store.create(a_work(a_manifest("Deployment", "web")))
        await until_condition(garden, work_key(), "Available", "False", "SomeManifestsAreNotAvailable")
        await until_condition(garden, work_key(), "Available", "True", "AllManifestsAvailable")


async def test_what_went_while_nobody_watched_is_removed_at_the_start(garden: Garden) -> None:
    async with member_agents(garden, LISBON):
        await until_joined(garden)
        await garden.store.create(a_work(a_manifest()))
        await until_condition(garden, work_key(), "Applied", "True", "AllManifestsApplied")
    await garden.change(work_key(), metadata={"finalizers": []})
    await garden.delete(work_key())
    await garden.until_gone(work_key())
    subject = garden.subjects.changed(work_key())
    await garden.bus.purge(garden.subjects.stream("OBJECTS"), subject)
    assert held(garden) == {"ConfigMap"}
    async with member_agents(garden, LISBON):

        async def removed() -> None:
            assert held(garden) == set()

        await eventually(removed, every=0.1)


async def test_a_work_that_the_stream_has_lost_is_kept(garden: Garden) -> None:
    async with member_agents(garden, LISBON):
        await until_joined(garden)
        await garden.store.create(a_work(a_manifest()))
        await until_condition(garden, work_key(), "Applied", "True", "AllManifestsApplied")
    await garden.bus.purge(garden.subjects.stream("OBJECTS"), garden.subjects.changed(work_key()))
    async with member_agents(garden, LISBON) as host:

        async def requested() -> None:
            assert "shop-work" in host.agents["lisbon"].cache.works

        await eventually(requested, every=0.1)
        assert held(garden) == {"ConfigMap"}


async def test_works_stand_while_the_stream_is_filled_again(garden: Garden) -> None:
    async with member_agents(garden, LISBON) as host:
        await until_joined(garden)
        await garden.store.create(a_work(a_manifest()))
        await until_condition(garden, work_key(), "Applied", "True", "AllManifestsApplied")
        (file,) = (garden.directory / "lisbon" / "manifests").glob("*.json")
        before = file.stat()
        with capture_logs() as logs:
            await garden.lose_stream("OBJECTS")

            async def filled_again() -> None:
                assert [each for each in logs if each["event"] == "follower.restarted"]
                agent = host.agents["lisbon"]
                assert agent.cache.is_complete
                assert agent.cache.cluster is not None
                assert "shop-work" in agent.cache.works

            await eventually(filled_again, every=0.01)
        after = file.stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


async def test_what_the_store_has_lost_of_a_cluster_is_kept_until_it_is_forgotten(garden: Garden) -> None:
    async with member_agents(garden, LISBON):
        await until_joined(garden)
        await garden.store.create(a_work(a_manifest()))
        await until_condition(garden, work_key(), "Applied", "True", "AllManifestsApplied")
    state, stream = garden.store.state, garden.subjects.stream("OBJECTS")
    for key in (cluster_key(), work_key()):  # store and bus as they were before
        del state.rows[key]
        await garden.bus.purge(stream, garden.subjects.changed(key))
    async with member_agents(garden, LISBON) as host:

        async def listed() -> None:
            found = await garden.store.unknown_objects()
            assert [(each.key, each.seed) for each in found] == [(work_key(), "member:lisbon")]

        await eventually(listed, every=0.1)
        assert not host.agents["lisbon"].cache.cluster_is_gone
        assert held(garden) == {"ConfigMap"}
        state.rows.bring_back(cluster_key())
        await garden.store.forget(work_key(), "member:lisbon")

        async def removed() -> None:
            assert held(garden) == set()

        await eventually(removed, every=0.1)
        assert await garden.store.unknown_objects() == []


async def test_a_cluster_whose_seed_the_store_has_lost_stays(garden: Garden) -> None:
    ready = {"conditions": [{"type": "GardenletReady", "status": "True"}], "allocatable": {"shoots": "20"}}
    key, enrolling = ObjectKey("seed", "", "aws-eu1"), an_agent_configuration(enrolSeeds=True)
    await garden.store.create(a_seed("aws-eu1", status=ready))
    async with member_agents(garden, enrolling):
        await until_joined(garden, "aws-eu1")
    del garden.store.state.rows[key]
    await garden.bus.purge(garden.subjects.stream("OBJECTS"), garden.subjects.changed(key))
    with capture_logs() as logs:
        async with member_agents(garden, enrolling) as host:

            async def listed() -> None:
                assert [each for each in logs if each["event"] == "seed.unknown"]

            await eventually(listed, every=0.1)
            assert "aws-eu1" not in host.agents
            assert not (await garden.get(cluster_key("aws-eu1")))["metadata"].get("deletionTimestamp")


async def test_a_cluster_leaves_whose_seed_went_while_nobody_watched(garden: Garden) -> None:
    ready = {"conditions": [{"type": "GardenletReady", "status": "True"}], "allocatable": {"shoots": "20"}}
    key, enrolling = ObjectKey("seed", "", "aws-eu1"), an_agent_configuration(enrolSeeds=True)
    await garden.store.create(a_seed("aws-eu1", status=ready))
    async with member_agents(garden, enrolling):
        await until_joined(garden, "aws-eu1")
    await garden.delete(key)
    await garden.until_gone(key)
    await garden.bus.purge(garden.subjects.stream("OBJECTS"), garden.subjects.changed(key))
    async with member_agents(garden, enrolling):
        await garden.until_gone(cluster_key("aws-eu1"))


async def test_a_cluster_that_is_deleted_is_cleaned_and_leaves_for_good(garden: Garden) -> None:
    async with member_agents(garden, LISBON):
        await until_joined(garden)
        await garden.store.create(a_work(a_manifest()))
        await until_condition(garden, work_key(), "Applied", "True", "AllManifestsApplied")
        await garden.delete(cluster_key())
        await garden.until_gone(cluster_key())
        assert held(garden) == set()
    async with member_agents(garden, LISBON) as host:

        async def observed() -> None:
            assert host.agents["lisbon"].cache.cluster_is_gone

        await eventually(observed, every=0.1)
        assert await garden.store.get(cluster_key()) is None


async def test_a_cluster_whose_directory_cannot_be_had_hinders_no_other_and_joins_when_it_can(garden: Garden) -> None:
    garden.directory.mkdir(parents=True, exist_ok=True)
    (garden.directory / "lisbon").write_text("not a directory")
    async with member_agents(garden, an_agent_configuration(a_member_cluster(), a_member_cluster("porto"))):
        await until_joined(garden, "porto")
        (garden.directory / "lisbon").unlink()
        await until_joined(garden)


async def deregistered(garden: Garden) -> None:
    """Have a cluster join and be deleted; then its agent is away until nobody tells of that any more."""
    async with member_agents(garden, LISBON):
        await until_joined(garden)
        await garden.store.create(a_work(a_manifest()))
        await until_condition(garden, work_key(), "Applied", "True", "AllManifestsApplied")
        await garden.delete(cluster_key())
        await garden.until_gone(cluster_key())
    await garden.bus.purge(garden.subjects.stream("OBJECTS"), garden.subjects.changed(cluster_key()))


async def test_a_cluster_that_was_deregistered_long_ago_does_not_come_back_with_its_agent(garden: Garden) -> None:
    await deregistered(garden)
    with capture_logs() as logs:
        async with member_agents(garden, LISBON) as host:

            async def previous() -> None:
                assert host.agents["lisbon"].cache.cluster_is_gone

            await eventually(previous, every=0.1)
            await asyncio.sleep(RETRY_SECONDS + 1)
            assert await garden.store.get(cluster_key()) is None
    (line,) = [each for each in logs if each["event"] == "cluster.excluded"]
    assert "apply a MemberCluster lisbon" in line["to_bring_it_in"]


async def test_a_cluster_that_was_deregistered_comes_back_when_people_apply_it(garden: Garden) -> None:
    await deregistered(garden)
    async with member_agents(garden, LISBON) as host:

        async def previous() -> None:
            assert host.agents["lisbon"].cache.cluster_is_gone

        await eventually(previous, every=0.1)
        manifest = {"apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster"}
        await garden.publish(garden.subjects.apply, encode({**manifest, "metadata": {"name": "lisbon"}}), {})
        assert (await until_joined(garden)).metadata.labels == {}


async def test_a_cluster_that_was_deregistered_registers_when_its_record_is_removed(garden: Garden) -> None:
    await deregistered(garden)
    (garden.directory / "lisbon" / REGISTERED).unlink()
    async with member_agents(garden, LISBON):
        await until_joined(garden)


async def test_a_cluster_of_another_landscape_registers(garden: Garden) -> None:
    file = garden.directory / "lisbon" / REGISTERED
    file.parent.mkdir(parents=True)
    file.write_bytes(encode({"landscape": "another", "origin": "", "uid": "u"}))
    async with member_agents(garden, LISBON):
        cluster = await until_joined(garden)
        assert cluster.metadata.uid in file.read_text()


async def test_a_cluster_that_the_stream_has_lost_is_read_and_not_applied_anew(garden: Garden) -> None:
    async with member_agents(garden, LISBON):
        before = await until_joined(garden)
    await garden.change(cluster_key(), metadata={"labels": {"region": "north"}})
    subject, stream = garden.subjects.changed(cluster_key()), garden.subjects.stream("OBJECTS")

    async def announced() -> None:
        reported = await garden.bus.last(stream, subject)
        assert reported is not None
        assert b"north" in reported.body

    await eventually(announced, every=0.05)
    await garden.bus.purge(stream, subject)
    with capture_logs() as logs:
        async with member_agents(garden, LISBON) as host:

            async def is_cached() -> None:
                assert host.agents["lisbon"].cache.cluster is not None

            await eventually(is_cached, every=0.1)
            assert (await until_joined(garden)).metadata.uid == before.metadata.uid
    assert not [each for each in logs if each["event"] == "cluster.registered"]


async def test_an_agent_that_never_registers_waits_for_people(garden: Garden) -> None:
    async with member_agents(garden, an_agent_configuration(a_member_cluster(), registration="Never")) as host:

        async def observed() -> None:
            assert host.is_synced

        await eventually(observed, every=0.1)
        await asyncio.sleep(1)
        assert await garden.store.get(cluster_key()) is None
        manifest = {"apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster"}
        await garden.publish(garden.subjects.apply, encode({**manifest, "metadata": {"name": "lisbon"}}), {})
        await until_joined(garden)


async def test_a_seed_that_was_made_anew_is_enrolled_though_its_cluster_was_deregistered(garden: Garden) -> None:
    ready = {"conditions": [{"type": "GardenletReady", "status": "True"}], "allocatable": {"shoots": "20"}}
    key, enrolling = ObjectKey("seed", "", "aws-eu1"), an_agent_configuration(enrolSeeds=True)
    await garden.store.create(a_seed("aws-eu1", status=ready))
    async with member_agents(garden, enrolling):
        first = await until_joined(garden, "aws-eu1")
        await garden.delete(key)
        await garden.until_gone(cluster_key("aws-eu1"))
    stream, subject = garden.subjects.stream("OBJECTS"), garden.subjects.changed(cluster_key("aws-eu1"))

    async def announced() -> None:
        last = await garden.bus.last(stream, subject)
        assert last is not None
        assert last.headers[Header.VERB] == "deleted"

    await eventually(announced)
    await garden.bus.purge(stream, subject)
    await garden.store.create(a_seed("aws-eu1", status=ready))
    async with member_agents(garden, enrolling):
        assert (await until_joined(garden, "aws-eu1")).metadata.uid != first.metadata.uid


async def test_a_silent_cluster_reports_nothing_until_it_is_back(garden: Garden) -> None:
    async with member_agents(garden, LISBON):
        await until_joined(garden)
        switch = garden.directory / "lisbon" / "silent"
        switch.touch()
        await garden.store.create(a_work(a_manifest()))
        await asyncio.sleep(1.5)
        before = (await garden.get(cluster_key()))["status"]["agentStatus"]
        await asyncio.sleep(1.5)
        assert (await garden.get(cluster_key()))["status"]["agentStatus"] == before
        assert "status" not in await garden.get(work_key())
        switch.unlink()
        await until_condition(garden, work_key(), "Applied", "True", "AllManifestsApplied")


async def test_a_work_that_was_too_large_to_be_announced_is_fetched(garden: Garden) -> None:
    async with member_agents(garden, LISBON):
        await until_joined(garden)
    await garden.store.create(a_work(a_manifest()))
    subject, stream = garden.subjects.changed(work_key()), garden.subjects.stream("OBJECTS")

    async def announced() -> None:
        assert await garden.bus.last(stream, subject) is not None

    await eventually(announced, every=0.05)
    await garden.publish(subject, b"", {Header.VERB: "modified", Header.VERSION: "9", Header.TOO_LARGE: "9000000"})
    async with member_agents(garden, LISBON):
        await until_condition(garden, work_key(), "Applied", "True", "AllManifestsApplied")


async def test_changes_that_people_make_outlive_the_agent(garden: Garden) -> None:
    async with member_agents(garden, LISBON):
        await until_joined(garden)
    await garden.change(cluster_key(), metadata={"labels": {"region": "north"}})
    async with member_agents(garden, LISBON):
        before = await until_joined(garden)

        async def beats() -> None:
            assert (await until_joined(garden)).agent != before.agent

        await eventually(beats, every=0.1)
        assert (await garden.get(cluster_key()))["metadata"]["labels"]["region"] == "north"


async def test_a_cluster_that_people_apply_as_a_whole_is_theirs(garden: Garden) -> None:
    async with member_agents(garden, LISBON):
        await until_joined(garden)
        manifest = {
            "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
            "kind": "MemberCluster",
            "metadata": {"name": "lisbon", "labels": {"region": "north"}},
        }
        await garden.publish(garden.subjects.apply, encode(manifest), {})

        async def applied() -> None:
            assert (await garden.get(cluster_key()))["metadata"]["labels"]["region"] == "north"

        await eventually(applied, every=0.1)
        await asyncio.sleep(RETRY_SECONDS + 1)
        await applied()


async def test_a_second_process_stands_by(garden: Garden) -> None:
    async with member_agents(garden, LISBON) as first:
        await until_joined(garden)
        async with member_agents(garden, LISBON) as second:

            async def observed() -> None:
                assert second.is_synced

            await eventually(observed, every=0.1)
            assert first.agents["lisbon"].is_active
            assert not second.agents["lisbon"].is_active


async def test_seeds_are_enrolled_with_one_setting_and_leave_with_their_seed(garden: Garden) -> None:
    ready = {"conditions": [{"type": "GardenletReady", "status": "True"}], "allocatable": {"shoots": "20"}}
    seed = a_seed("aws-eu1", spec={"taints": [{"key": "dedicated"}]}, status=ready)
    await garden.store.create(seed)
    async with member_agents(garden, an_agent_configuration(enrolSeeds=True)):
        cluster = await until_joined(garden, "aws-eu1")
        assert cluster.metadata.labels["topology.kubernetes.io/region"] == seed["spec"]["provider"]["region"]
        assert [str(taint) for taint in cluster.spec.taints] == ["dedicated:NoSchedule"]
        assert cluster.status.resource_usage.allocatable == {"shoots": "20"}
        await garden.delete(ObjectKey("seed", "", "aws-eu1"))
        await garden.until_gone(cluster_key("aws-eu1"))
