"""Whole schedulers with a relay on real NATS and Redis: manifests in the store, seeds on shoots, and back again."""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.configuration.scheduler import SchedulerConfiguration, parse_configuration
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.scheduling_profiles import (
    ResourcesFit,
    SchedulingProfile,
    WeightedResource,
    WeightedScore,
)
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.connections import Connections
from gardenbus.common.ports.store import Store
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.common.runtime.health import Health
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.relay.adapters.redis_outbox import RedisOutbox
from gardenbus.relay.relay import Relay
from gardenbus.scheduler.app import start_scheduler
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduler.settings import SchedulerSettings
from gardenbus.scheduler.watch.installed_plugins import SeedPlugin
from gardenbus.scheduling.user_filters import SeedFilter
from tests.support.builders import (
    a_cloudprofile,
    a_condition,
    a_managed_seed,
    a_project,
    a_region_configmap,
    a_seed,
    a_shoot,
    merged,
)
from tests.support.eventually import eventually
from tests.support.kubernetes_manifests import COMPOSE, uncommented
from tests.support.servers import Server

_prefixes = (f"sched{number}" for number in itertools.count())


@dataclass
class Garden:
    """Servers, a store that is open, and a relay that announces."""

    nats: Server
    redis: Server
    prefix: str
    store: Store
    bus: Bus
    subjects: Subjects

    async def hold(self, *documents: Document) -> None:
        for document in documents:
            await self.store.create(document)

    async def change(self, kind: str, name: str, changes: Document, namespace: str = "") -> None:
        stored = await self.store.get(ObjectKey(kind, namespace, name))
        assert stored is not None
        await self.store.update(stored, merged(stored.document(), changes))

    async def shoots(self) -> Sequence[StoredObject]:
        found: list[StoredObject] = []
        token: str | None = None
        while True:
            page = await self.store.list_page("shoot", continue_token=token)
            found += page.objects
            token = page.continue_token
            if token is None:
                return found

    async def seeds_of_shoots(self) -> Counter[str]:
        return Counter(shoot.parts.seed_name for shoot in await self.shoots())

    async def expect(self, seeds: dict[str, int]) -> None:
        async def placed() -> None:
            assert await self.seeds_of_shoots() == seeds

        await eventually(placed, every=0.02)

    async def expect_waiting(self, count: int) -> None:
        async def waiting() -> None:
            assert sum(each.count for each in await self.store.unschedulable_classes("default-scheduler")) == count

        await eventually(waiting, every=0.02)

    @asynccontextmanager
    async def scheduler(
        self,
        *,
        strategy: str = "SameRegion",
        scheduler_name: str = "default-scheduler",
        profiles: tuple[SchedulingProfile, ...] = (),
        installed: Mapping[str, SeedPlugin] = {},
        filters: Sequence[SeedFilter] = (),
        batch_size: int = 500,
    ) -> AsyncGenerator[ServiceContext[SchedulerSettings]]:
        """One scheduler process, inside of this one, with connections of its own."""
        configuration = SchedulerConfiguration(strategy=strategy, scheduler_name=scheduler_name, profiles=profiles)
        settings = SchedulerSettings(prefix=self.prefix, configuration=configuration, batch_size=batch_size)
        context = ServiceContext("scheduler", settings, health=Health(CollectorRegistry()), clock=SystemClock())
        redis = RedisConnection(self.redis.url, self.prefix)
        async with jetstream.connect(self.nats.url, "scheduler", self.prefix) as bus:
            try:
                await start_scheduler(
                    context,
                    Connections(RedisStore(redis, SystemClock(), reporter="shoot-scheduler"), bus, self.subjects),
                    backoff=lambda failures: 60.0,
                    filters=filters,
                    installed=installed,
                    metrics=SchedulerMetrics(CollectorRegistry()),
                )
                yield context
            finally:
                await context.close()
                await redis.close()


@pytest.fixture
async def garden(shared_nats_server: Server, shared_redis_server: Server) -> AsyncIterator[Garden]:
    prefix = next(_prefixes)
    subjects = Subjects(prefix)
    redis = RedisConnection(shared_redis_server.url, prefix)
    clock = SystemClock()
    async with jetstream.connect(shared_nats_server.url, "test", prefix) as bus:
        relay = Relay(RedisOutbox(redis, clock, leader="relay"), bus, subjects, clock)
        running = asyncio.create_task(relay.run())
        store = RedisStore(redis, clock)

        async def is_open() -> None:
            if running.done():
                running.result()
            try:
                await store.create(a_project())
            except Unavailable as error:
                raise AssertionError from error

        await eventually(is_open, every=0.02)
        await store.create(a_cloudprofile())
        yield Garden(shared_nats_server, shared_redis_server, prefix, store, bus, subjects)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await redis.close()


async def test_shoots_that_were_there_and_shoots_that_come_get_their_seeds(garden: Garden) -> None:
    await garden.hold(a_seed("a", shoots="30"), a_seed("b", shoots="30"), *(a_shoot(f"old-{n}") for n in range(20)))
    async with garden.scheduler():
        await garden.expect({"a": 10, "b": 10})
        await garden.hold(*(a_shoot(f"new-{n}") for n in range(20)))
        await garden.expect({"a": 20, "b": 20})


async def test_three_schedulers_fill_seeds_to_the_last_place_and_no_further(garden: Garden) -> None:
    seeds = [a_seed(f"s{number}", shoots=str(number)) for number in range(1, 11)]
    await garden.hold(*seeds, *(a_shoot(f"shoot-{n:03}") for n in range(100)))
    async with garden.scheduler(), garden.scheduler(), garden.scheduler():
        expected = {f"s{number}": number for number in range(1, 11)} | {"": 45}
        await garden.expect(expected)
        await garden.expect_waiting(45)
        (operation, *_) = [
            shoot.document()["status"]["lastOperation"] for shoot in await garden.shoots() if not shoot.parts.seed_name
        ]
        assert operation["state"] == "Pending"
        assert "capacity" in operation["description"]


@pytest.mark.parametrize("unblock_index", ["capacity", "seed", "ready", "freed", "profile", "taint", "project"])
async def test_a_waiting_shoot_is_placed_as_soon_as_something_lets_it_fit(garden: Garden, unblock_index: str) -> None:
    seed = {
        "capacity": a_seed("a", shoots="0"),
        "ready": a_seed("a", ready=False),
        "freed": a_seed("a", shoots="1"),
        "taint": a_seed("a", spec={"taints": [{"key": "x"}]}),
    }.get(unblock_index, a_seed("a"))
    profile = {"cloudProfile": {"name": "later"}} if unblock_index == "profile" else {}
    namespace = "garden-later" if unblock_index == "project" else "garden-dev"
    await garden.hold(*([] if unblock_index == "seed" else [seed]))
    if unblock_index == "freed":
        await garden.hold(a_shoot("first", spec={"seedName": "a"}))
    await garden.hold(a_shoot("second", namespace, spec=profile))
    async with garden.scheduler():
        await garden.expect_waiting(1)
        match unblock_index:
            case "seed":
                await garden.hold(seed)
            case "freed":
                first = await garden.store.get(ObjectKey("shoot", "garden-dev", "first"))
                assert first is not None
                unheld = await garden.store.update(first, merged(first.document(), {"metadata": {"finalizers": []}}))
                assert isinstance(unheld, StoredObject)
                await garden.store.delete(unheld)
            case "profile":
                await garden.hold(a_cloudprofile("later"))
            case "project":
                await garden.hold(a_project("later"))
            case "taint":
                await garden.change("seed", "a", {"spec": {"taints": []}})
            case _:
                await garden.change("seed", "a", {"status": a_seed()["status"]})
        await garden.expect({"a": 1})


async def test_a_shoot_that_is_a_seed_goes_elsewhere_than_to_what_it_hosts(garden: Garden) -> None:
    hosts = [a_shoot("a", "garden"), a_shoot("b", "garden", spec={"seedName": "a"})]
    await garden.hold(a_project("garden", "garden"), a_seed("a"), a_seed("b"), a_seed("host-seed", shoots="0"))
    await garden.hold(*hosts, a_managed_seed("a"), a_managed_seed("b"))
    async with garden.scheduler(), garden.scheduler():
        await garden.expect_waiting(1)
        await garden.expect({"a": 1, "": 1})
        await garden.change("seed", "host-seed", {"status": a_seed(shoots="1")["status"]})
        await garden.expect({"a": 1, "host-seed": 1})


async def test_a_seed_marked_for_removal_is_filled_again_only_without_the_mark(garden: Garden) -> None:
    await garden.hold(a_seed("a"))
    async with garden.scheduler():
        await garden.change("seed", "a", {"metadata": {"annotations": {REMOVAL_ANNOTATION: "garden/set"}}})
        await garden.hold(*(a_shoot(f"s{number}") for number in range(5)))
        await garden.expect_waiting(5)
        await garden.change("seed", "a", {"metadata": {"annotations": {REMOVAL_ANNOTATION: None}}})
        await garden.expect({"a": 5})


async def test_a_scheduler_takes_only_what_is_its_own(garden: Garden) -> None:
    await garden.hold(a_seed("a"), a_shoot("ours"), a_shoot("mine", spec={"schedulerName": "mine"}))
    async with garden.scheduler():
        await garden.expect({"a": 1, "": 1})
        async with garden.scheduler(scheduler_name="mine"):
            await garden.expect({"a": 2})


async def test_one_process_serves_several_profiles_each_by_its_own_queue_and_scores(garden: Garden) -> None:
    fit = ResourcesFit(type="MostAllocated", resources=(WeightedResource("shoots"),))
    packed = SchedulingProfile(scheduler_name="packed", scores=(WeightedScore("SeedResourcesFit", 1, fit),))
    named: Document = {"spec": {"schedulerName": "packed"}}
    await garden.hold(a_seed("a", shoots="4"), a_seed("b", shoots="40"))
    await garden.hold(
        *(a_shoot(f"packed-{n}", **named) for n in range(6)), a_shoot("others", spec={"schedulerName": "x"})
    )
    async with garden.scheduler(profiles=(SchedulingProfile(), packed)):
        await garden.expect({"a": 4, "b": 2, "": 1})
        await garden.hold(*(a_shoot(f"plain-{n}") for n in range(3)), a_shoot("packed-last", **named))
        await garden.expect({"a": 4, "b": 6, "": 1})
        shoot = ObjectKey("shoot", "garden-dev", "packed-0")
        response = await garden.bus.request(garden.subjects.explain("packed", shoot), b"", timeout_seconds=5)
        considered = msgspec.json.decode(response)["result"]
        assert [each["name"] for each in considered["scores"]] == ["SeedResourcesFit"]
        assert {each["seed"] for each in considered["ranking"]} >= {"b"}


async def test_the_profiles_of_the_deployed_configuration_start_and_place_shoots(garden: Garden) -> None:
    configuration = parse_configuration(uncommented(COMPOSE / "scheduler.yaml").encode())
    names = [each.scheduler_name for each in configuration.profiles]
    await garden.hold(a_seed("a"), *(a_shoot(f"of-{name}", spec={"schedulerName": name}) for name in names))
    async with garden.scheduler(strategy=configuration.strategy, profiles=configuration.profiles):
        await garden.expect({"a": 3})


async def test_a_region_configmap_without_effect_gets_a_warning(garden: Garden) -> None:
    await garden.hold(a_region_configmap("a"), a_region_configmap("b"))
    async with garden.scheduler(strategy="MinimalDistance"):
        key = ObjectKey("configmap", "garden", "b")

        async def warned() -> Document:
            delivered = await garden.bus.last(garden.subjects.stream("EVENTS"), garden.subjects.event(key))
            assert delivered is not None
            return msgspec.json.decode(delivered.body)

        event = await eventually(warned)
        assert (event["type"], event["reason"]) == ("Warning", "RegionConfigIgnored")
        assert "'a'" in event["message"]


async def test_it_explains_each_seed(garden: Garden) -> None:
    await garden.hold(a_seed("a", shoots="0"), a_seed("b"), a_shoot(spec={"schedulerName": "nobody"}))
    async with garden.scheduler():
        response = await garden.bus.request(
            f"{garden.prefix}.scheduler.default-scheduler.explain.garden-dev.apollo", b""
        )
        result = msgspec.json.decode(response)["result"]
        assert result["wouldChoose"] == "b"
        assert result["skipped"] == "it waits for the scheduler 'nobody'"
        assert result["funnel"] == [{"rule": "capacity", "rejected": 1, "left": 1}]
        assert [ranked["seed"] for ranked in result["ranking"]] == ["b"]
        assert [(rejection["seed"], rejection["rule"]) for rejection in result["rejections"]] == [("a", "capacity")]


async def test_a_seed_that_a_shoot_hosts_is_explained_as_no_place_for_it(garden: Garden) -> None:
    shoot = a_shoot("child", "garden", spec={"schedulerName": "nobody"})
    await garden.hold(a_project("garden", "garden"), a_seed("child"), a_seed("host", shoots="0"), shoot)
    await garden.hold(a_managed_seed("child"))
    async with garden.scheduler():
        response = await garden.bus.request(f"{garden.prefix}.scheduler.default-scheduler.explain.garden.child", b"")
        result = msgspec.json.decode(response)["result"]

    assert result["wouldChoose"] is None
    assert "left out: {child => it is hosted by this very shoot}" in result["message"]
    assert result["funnel"][0] == {"rule": "circular", "rejected": 1, "left": 1}
    assert [(rejection["seed"], rejection["rule"]) for rejection in result["rejections"]] == [
        ("child", "circular"),
        ("host", "capacity"),
    ]


async def test_a_shoot_that_waits_is_told_when_it_is_tried_again_and_what_would_wake_it(garden: Garden) -> None:
    await garden.hold(a_seed("a", shoots="0"), a_shoot())
    async with garden.scheduler():
        await garden.expect_waiting(1)
        subject = garden.subjects.explain("default-scheduler", ObjectKey("shoot", "garden-dev", "apollo"))

        async def explained() -> Document:
            result = msgspec.json.decode(await garden.bus.request(subject, b""))["result"]
            assert result["nextAttempt"]
            return result

        result = await eventually(explained)
        due_at = datetime.fromisoformat(result["nextAttempt"])
        assert 0 < (due_at - datetime.now(UTC)).total_seconds() < 70
        assert result["recorded"] is None
        assert result["wakesOn"][0] == "a shoot leaves seed a, or status.allocatable.shoots is raised there"
        assert result["wakesOn"][-1].startswith("a seed is added of provider 'aws', in or near region 'eu-west-1'")


async def test_what_was_recorded_when_it_was_bound_is_told_of_a_placed_shoot(garden: Garden) -> None:
    await garden.hold(a_seed("a"), a_seed("b"), a_seed("far", spec={"provider": {"region": "x"}}), a_shoot())
    async with garden.scheduler():
        await garden.expect({"a": 1})
        subject = garden.subjects.explain("default-scheduler", ObjectKey("shoot", "garden-dev", "apollo"))
        recorded = msgspec.json.decode(await garden.bus.request(subject, b""))["result"]["recorded"]
    assert recorded.pop("at").endswith("Z")
    assert recorded == {
        "seed": "a",
        "strategy": "SameRegion",
        "considered": 3,
        "funnel": [{"rule": "strategy", "rejected": 1, "left": 2}],
        "left": 2,
        "nearerWithoutRoom": 0,
        "eligible": 2,
        "distance": None,
        "used": 0,
        "allocatable": 250,
        "runnerUp": {"seed": "b", "used": 0},
    }


async def test_a_seed_is_explained_rule_by_rule_with_those_that_it_could_take(garden: Garden) -> None:
    cordoned = a_seed("a", spec={"settings": {"scheduling": {"visible": False}}})
    await garden.hold(cordoned, a_shoot("fits"), a_shoot("other", spec={"region": "eu-central-1"}))
    async with garden.scheduler():
        await garden.expect_waiting(2)
        response = await garden.bus.request(garden.subjects.explain_seed("default-scheduler", "a"), b"")
        gone = await garden.bus.request(garden.subjects.explain_seed("default-scheduler", "gone"), b"")
    result = msgspec.json.decode(response)["result"]
    assert not result["usable"]
    assert [rule["rule"] for rule in result["rules"] if not rule["ok"]] == ["not cordoned"]
    assert result["waiting"] == [{"namespace": "garden-dev", "name": "fits"}]
    assert (result["used"], result["allocatable"], result["cordoned"]) == (0, 250, True)
    assert msgspec.json.decode(gone)["error"]["code"] == 404


async def test_a_drain_is_explained_with_where_each_shoot_would_move_and_changes_nothing(garden: Garden) -> None:
    leaving = a_shoot("leaving", spec={"seedName": "b"}, status={"seedName": "a"})
    there = [a_shoot(name, spec={"seedName": "a"}, status={"seedName": "a"}) for name in ("one", "two")]
    ready = [a_condition("GardenletReady"), a_condition("BackupBucketsReady")]
    backup: Document = {"spec": {"backup": {"provider": "aws"}}, "status": {"conditions": ready}}
    await garden.hold(a_seed("a", **backup), a_seed("b", shoots="2", **backup), leaving, *there)
    async with garden.scheduler():

        async def planned() -> Document:
            response = await garden.bus.request(garden.subjects.explain_drain("default-scheduler", "a"), b"")
            result = msgspec.json.decode(response)["result"]
            assert len(result["moves"]) == 1, result["stays"]
            return result

        result = await eventually(planned)
        gone = await garden.bus.request(garden.subjects.explain_drain("default-scheduler", "gone"), b"")
        assert await garden.seeds_of_shoots() == {"a": 2, "b": 1}
    assert (result["seed"], result["obstacle"], result["shoots"], result["notPlanned"]) == ("a", "", 3, 0)
    assert result["moves"] == [{"namespace": "garden-dev", "name": "one", "source": "a", "target": "b"}]
    assert {each["name"]: each["waits"] for each in result["stays"]} == {"leaving": True, "two": False}
    assert msgspec.json.decode(gone)["error"]["code"] == 404


async def test_a_drain_is_explained_by_the_profile_of_each_shoots_scheduler(garden: Garden) -> None:
    fit = ResourcesFit(type="MostAllocated", resources=(WeightedResource("shoots"),))
    profiles = (
        SchedulingProfile(),
        SchedulingProfile(scheduler_name="packed", scores=(WeightedScore("SeedResourcesFit", 1, fit),)),
    )
    ready = [a_condition("GardenletReady"), a_condition("BackupBucketsReady")]
    backup: Document = {"spec": {"backup": {"provider": "aws"}}, "status": {"conditions": ready}}

    def on(seed: str, name: str, **spec: str) -> Document:
        return a_shoot(name, spec={"seedName": seed, **spec}, status={"seedName": seed})

    await garden.hold(*(a_seed(name, shoots="10", **backup) for name in "abc"), *(on("c", f"c-{n}") for n in range(3)))
    leaving = [on("a", "spread"), on("a", "packed", schedulerName="packed"), on("a", "away", schedulerName="elsewhere")]
    await garden.hold(*leaving)
    async with garden.scheduler(profiles=profiles):

        async def planned() -> Document:
            response = await garden.bus.request(garden.subjects.explain_drain("default-scheduler", "a"), b"")
            result = msgspec.json.decode(response)["result"]
            assert len(result["moves"]) == 2, result["stays"]
            return result

        result = await eventually(planned)
    assert {each["name"]: each["target"] for each in result["moves"]} == {"spread": "b", "packed": "c"}
    assert [each["name"] for each in result["stays"]] == ["away"]
    assert "placed by the scheduler 'elsewhere'" in result["stays"][0]["reason"]


async def test_a_placed_shoot_does_not_stand_in_its_own_way_when_it_is_explained(garden: Garden) -> None:
    await garden.hold(a_seed("a", shoots="1"), a_shoot())
    async with garden.scheduler():
        await garden.expect({"a": 1})

        async def explained() -> Document:
            subject = garden.subjects.explain("default-scheduler", ObjectKey("shoot", "garden-dev", "apollo"))
            result = msgspec.json.decode(await garden.bus.request(subject, b""))["result"]
            assert result["placed"] == "a"
            return result

        result = await eventually(explained)
        assert [(ranked["seed"], ranked["usage"]) for ranked in result["ranking"]] == [("a", 0)]


async def test_a_region_configmap_that_brings_a_far_seed_near_wakes_who_waits(garden: Garden) -> None:
    far = "x" * 520
    await garden.hold(a_seed("a", spec={"provider": {"region": far}}), a_shoot())
    async with garden.scheduler(strategy="MinimalDistance"):
        await garden.expect_waiting(1)
        await garden.hold(a_region_configmap(data={"eu-west-1": f"{far}: 7"}))
        await garden.expect({"a": 1})
