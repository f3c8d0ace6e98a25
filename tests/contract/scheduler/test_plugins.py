"""Plug-ins of a scheduler over real NATS: what they reply counts, and a fault of theirs holds up their class alone."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gardenbus.common.adapters.nats import jetstream, work_queue
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_profiles import OnError, RemotePlugin, SchedulingProfile, WeightedScore
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, Request
from gardenbus.diagnostics.admin import connect_admin
from gardenbus.diagnostics.services import silent_plugins
from gardenbus.scheduler.controllers import shoots
from tests.contract.scheduler.test_scheduler import Garden
from tests.support.builders import a_project, a_seed, a_shoot
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import Server
from tests.support.spans import FROM_A_CLIENT, recorded

EXAMPLE = Path(__file__).parents[3] / "examples/profiles/carbon.py"

Reply = Callable[[dict[str, Any]], Awaitable[object]]


def a_profile(on_error: OnError = "Ignore", **args: Any) -> SchedulingProfile:
    carbon = RemotePlugin(on_error=on_error, **args)
    return SchedulingProfile(scores=(WeightedScore("Remote/carbon", 1, carbon),))


Serve = Callable[..., Awaitable[list[dict[str, Any]]]]


@pytest.fixture
async def serve(garden: Garden) -> AsyncIterator[Serve]:
    """Responds to requests as a plug-in, on a connection of its own; returns those that came."""
    async with jetstream.connect(garden.nats.url, "plugin", garden.prefix) as bus:
        yield partial(_serve, bus, garden.subjects.plugin("carbon"))


async def _serve(bus: Bus, subject: str, reply: Reply, name: str = "carbon") -> list[dict[str, Any]]:
    requests: list[dict[str, Any]] = []

    async def handle(request: Request) -> bytes:
        body = msgspec.json.decode(request.body)
        requests.append(body)
        made = await reply(body)
        return made if isinstance(made, bytes) else json.dumps(made).encode()

    await bus.serve(name, "1.0.0", {subject: handle})
    return requests


async def prefers_b(request: dict[str, Any]) -> object:
    return {"scores": {"b": 90}, "default": 10} if "b" in {each["name"] for each in request["seeds"]} else {}


async def placed(garden: Garden, name: str, namespace: str = "garden-dev") -> str:
    """The seed of a shoot, once it has one."""

    async def seed() -> str:
        stored = await garden.store.get(ObjectKey("shoot", namespace, name))
        assert stored is not None
        assert stored.parts.seed_name
        return stored.parts.seed_name

    return await eventually(seed, every=0.02)


async def explain(garden: Garden, name: str) -> dict[str, Any]:
    subject = garden.subjects.explain("default-scheduler", ObjectKey("shoot", "garden-dev", name))
    return msgspec.json.decode(await garden.bus.request(subject, b""))["result"]


async def pending_because(garden: Garden, name: str) -> str:
    """The reason of a shoot that is unschedulable."""

    async def reason() -> str:
        stored = await garden.store.get(ObjectKey("shoot", "garden-dev", name))
        assert stored is not None
        return str(stored.document()["status"]["lastOperation"]["description"])

    async def retried() -> str:
        try:
            return await reason()
        except KeyError as error:
            raise AssertionError from error

    return await eventually(retried, every=0.02)


async def test_the_seed_of_the_highest_score_is_chosen_and_what_is_rejected_is_not(
    garden: Garden, serve: Serve
) -> None:
    async def reply(_request: dict[str, Any]) -> object:
        return {"scores": {"b": 50, "c": 90}, "rejected": {"c": "maintenance until 14:00"}, "validForSeconds": 60}

    requests = await serve(reply)
    await garden.hold(a_seed("a"), a_seed("b"), a_seed("c"))
    async with garden.scheduler(profiles=(a_profile(),)):
        await garden.hold(a_shoot("first"))
        assert await placed(garden, "first") == "b"
        await garden.hold(a_shoot("second"))
        assert await placed(garden, "second") == "b"
        explained = await explain(garden, "first")
    (request,) = requests
    assert (request["apiVersion"], request["profile"]) == ("plugin.gardenbus.io/v1", "default-scheduler")
    assert request["input"].keys() == {"namespace", "purpose", "provider", "region"}
    assert request["input"]["namespace"] == "garden-dev"
    assert {each["name"] for each in request["seeds"]} == {"a", "b", "c"}
    assert [(each["seed"], each["scores"]) for each in explained["ranking"]] == [("b", [50]), ("a", [0])]
    assert [(each["seed"], each["rule"], each["detail"]) for each in explained["rejections"]] == [
        ("c", "plugin", "carbon: maintenance until 14:00")
    ]
    assert explained["plugins"][0]["ageSeconds"] is not None


async def test_where_all_seeds_are_rejected_a_shoot_waits_and_says_by_whom(garden: Garden, serve: Serve) -> None:
    async def reply(request: dict[str, Any]) -> object:
        return {"rejected": {each["name"]: "too dirty" for each in request["seeds"]}}

    await serve(reply)
    await garden.hold(a_seed("a"))
    async with garden.scheduler(profiles=(a_profile(),)):
        await garden.hold(a_shoot("first"))
        assert "carbon: too dirty" in await pending_because(garden, "first")


async def hangs(_request: dict[str, Any]) -> object:
    await asyncio.sleep(HANG_SECONDS)
    return {}


async def is_late(request: dict[str, Any]) -> object:
    await asyncio.sleep(0.5)
    return await prefers_b(request)


def replies(body: object) -> Reply:
    async def reply(_request: dict[str, Any]) -> object:
        return body

    return reply


FAULTS = {
    "nobody": None,
    "hangs": hangs,
    "late": is_late,
    "above": replies({"scores": {"b": 101}}),
    "below": replies({"scores": {"b": -1}}),
    "fraction": replies({"scores": {"b": 50.5}}),
    "text": replies({"scores": {"b": "50"}}),
    "default": replies({"default": 101}),
    "unknown seed": replies({"scores": {"x": 50, "b": 90}}),
    "no reason": replies({"rejected": {"a": ""}}),
    "list": replies([]),
    "no JSON": replies(b"\xff{"),
    "10 MB": replies(b'{"scores": {"b": 90}, "more": "' + b"x" * 10_000_000 + b'"}'),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_that_is_ignored_places_shoots_as_if_there_were_no_plugin(
    garden: Garden, serve: Serve, fault: str
) -> None:
    if (reply := FAULTS[fault]) is not None:
        await serve(reply)
    await garden.hold(a_seed("a"), a_seed("b"), a_shoot("first"))
    async with garden.scheduler(profiles=(a_profile(),)):
        assert await placed(garden, "first") == "a"


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_of_a_required_plugin_leaves_its_shoots_waiting_with_its_name(
    garden: Garden, serve: Serve, fault: str
) -> None:
    if (reply := FAULTS[fault]) is not None:
        await serve(reply)
    await garden.hold(a_seed("a"), a_seed("b"), a_shoot("first"))
    async with garden.scheduler(profiles=(a_profile("Fail"),)):
        reason = await pending_because(garden, "first")
        assert "the plug-in carbon is required, and there is no valid reply of it" in reason


async def test_a_class_that_waits_for_its_plugin_holds_up_no_other(garden: Garden, serve: Serve) -> None:
    async def reply(request: dict[str, Any]) -> object:
        return await (hangs if request["input"]["namespace"] == "garden-dev" else prefers_b)(request)

    await serve(reply)
    await garden.hold(a_project("other"), a_seed("a"), a_seed("b"))
    async with garden.scheduler(profiles=(a_profile(deadline_seconds=HANG_SECONDS),)):
        await garden.hold(a_shoot("first"), *(a_shoot(f"s{number}", "garden-other") for number in range(20)))
        assert {await placed(garden, f"s{number}", "garden-other") for number in range(20)} == {"b"}
        first = await garden.store.get(ObjectKey("shoot", "garden-dev", "first"))
        assert first is not None
        assert not first.parts.seed_name


class Explodes:
    """A user's filter with a mistake."""

    name = "explodes"

    def shoot_input(self, shoot: Document) -> Any:
        if shoot["metadata"]["name"] == "bad":
            raise ZeroDivisionError

    def filter(self, shoot_input: Any, seed: Document) -> str | None:
        del shoot_input, seed


async def test_a_filter_that_raises_beside_plugins_leaves_its_shoot_alone_waiting(garden: Garden, serve: Serve) -> None:
    await serve(prefers_b)
    await garden.hold(a_seed("a"), a_seed("b"))
    async with garden.scheduler(profiles=(a_profile(),), filters=[Explodes()]):
        await garden.hold(a_shoot("bad"), a_shoot("good"))
        assert await placed(garden, "good") == "b"
        assert "the filter explodes raised ZeroDivisionError" in await pending_because(garden, "bad")


async def test_a_shoot_that_waits_for_a_plugin_longer_than_its_ack_deadline_is_delivered_once(
    garden: Garden, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_queue, "ACK_WAIT_SECONDS", 1.0)
    monkeypatch.setattr(shoots, "EXTEND_SECONDS", 0.2)

    async def reply(request: dict[str, Any]) -> object:
        await asyncio.sleep(2.5)
        return await prefers_b(request)

    await serve(reply)
    await garden.hold(a_seed("a"), a_seed("b"), a_shoot("first"))
    async with garden.scheduler(profiles=(a_profile(deadline_seconds=HANG_SECONDS),)):
        assert await placed(garden, "first") == "b"
        info = f"$JS.API.CONSUMER.INFO.{garden.subjects.stream('QUEUES')}.scheduling-default-scheduler"
        delivered = msgspec.json.decode(await garden.bus.request(info, b""))["delivered"]
    assert delivered["consumer_seq"] == 1


async def test_the_attempt_of_a_shoot_that_waits_for_a_plugin_is_traced_to_its_bind(
    garden: Garden, serve: Serve
) -> None:
    await serve(prefers_b)
    await garden.hold(a_seed("a"), a_seed("b"))
    with recorded() as spans:
        with tracing.within(FROM_A_CLIENT):
            await garden.hold(a_shoot("first"))
        async with garden.scheduler(profiles=(a_profile(deadline_seconds=HANG_SECONDS),)):
            assert await placed(garden, "first") == "b"

            async def ended() -> None:
                assert spans.named("scheduler.schedule").ends

            await eventually(ended)
    assert spans.named("scheduler.schedule").failed == ""


async def test_a_late_reply_counts_for_those_who_come_after_it(garden: Garden, serve: Serve) -> None:
    await serve(is_late)
    await garden.hold(a_seed("a"), a_seed("b"), a_shoot("s0"))
    async with garden.scheduler(profiles=(a_profile(),)):
        assert await placed(garden, "s0") == "a"

        async def counts() -> None:
            explained = await explain(garden, "s0")
            assert explained["wouldChoose"] == "b"
            assert "ms are allowed" in explained["plugins"][0]["problem"]

        await eventually(counts, every=0.05)
        await garden.hold(a_shoot("s1"))
        assert await placed(garden, "s1") == "b"


async def test_a_bind_waits_for_its_permit_over_nats(garden: Garden, serve: Serve) -> None:
    async def reply(request: dict[str, Any]) -> object:
        names = {f"{each['namespace']}/{each['name']}" for each in request["shoots"]}
        waits = {"garden-dev/second"} if len(requests) < 3 else set[str]()
        denied = dict.fromkeys(names & {"garden-dev/first"}, "no budget")
        return {"denied": denied, "later": dict.fromkeys(names & waits, 0.2)}

    requests = await serve(reply)
    await garden.hold(a_seed("a"))
    async with garden.scheduler(profiles=(a_profile("Fail", points=("Permit",), deadline_seconds=HANG_SECONDS),)):
        for name in ("first", "second"):
            await garden.hold(a_shoot(name))
            await eventually(lambda wanted=name: _requested_about(requests, wanted))
        await garden.hold(a_shoot("third"))
        assert await placed(garden, "third") == "a"
        assert "carbon denies seed a: no budget" in await pending_because(garden, "first")
        assert await placed(garden, "second") == "a"
    (shoot,) = requests[0]["shoots"]
    assert (requests[0]["points"], shoot["seed"]["name"], shoot["uid"] != "") == (["Permit"], "a", True)


async def _requested_about(requests: list[dict[str, Any]], name: str) -> None:
    assert any(each["name"] == name for request in requests for each in request["shoots"])


PERMIT_FAULTS = {
    "nobody": None,
    "hangs": hangs,
    "unknown shoot": replies({"denied": {"garden-dev/other": "no"}}),
    "no reason": replies({"denied": {"garden-dev/first": ""}}),
    "never": replies({"later": {"garden-dev/first": 0}}),
    "scores": replies({"scores": {"a": 1}}),
    "no JSON": replies(b"\xff{"),
}


@pytest.mark.parametrize("fault", PERMIT_FAULTS)
@pytest.mark.parametrize("on_error", ["Ignore", "Fail"])
async def test_of_a_permit_over_nats_that_cannot_be_meant_its_policy_decides(
    garden: Garden, serve: Serve, fault: str, on_error: OnError
) -> None:
    if (reply := PERMIT_FAULTS[fault]) is not None:
        await serve(reply)
    await garden.hold(a_seed("a"), a_shoot("first"))
    async with garden.scheduler(profiles=(a_profile(on_error, points=("Permit",)),)):
        if on_error == "Ignore":
            assert await placed(garden, "first") == "a"
        else:
            assert "the plug-in carbon is required" in await pending_because(garden, "first")


async def test_of_two_replies_to_one_request_the_first_counts(garden: Garden, serve: Serve) -> None:
    await serve(prefers_b, "one")
    await serve(prefers_b, "two")
    await garden.hold(a_seed("a"), a_seed("b"), a_shoot("first"))
    async with garden.scheduler(profiles=(a_profile(deadline_seconds=HANG_SECONDS),)):
        assert await placed(garden, "first") == "b"


async def test_a_seed_that_changes_is_requested_about_again(garden: Garden, serve: Serve) -> None:
    requests = await serve(prefers_b)
    await garden.hold(a_seed("a"), a_seed("b"), a_shoot("first"))
    async with garden.scheduler(profiles=(a_profile(deadline_seconds=HANG_SECONDS),)):
        assert await placed(garden, "first") == "b"
        await garden.change("seed", "a", {"metadata": {"labels": {"tier": "gold"}}})
        await garden.hold(a_shoot("second"))
        assert await placed(garden, "second") == "b"

        async def again() -> None:
            assert [{each["name"] for each in request["seeds"]} for request in requests[1:]] == [{"a"}]

        await eventually(again)


async def test_doctor_warns_of_a_plugin_that_nothing_responds_for(garden: Garden, serve: Serve) -> None:
    async with garden.scheduler(profiles=(a_profile(),)):

        async def findings() -> list[str]:
            infos = await infos_of(garden)
            async with connect_admin(garden.nats.url, "test") as admin:
                return [each.found for each in await silent_plugins(admin, infos)]

        async def warned() -> None:
            assert await findings() == [f"default-scheduler: nothing responds on {garden.prefix}.plugin.carbon"]

        await eventually(warned)
        await serve(prefers_b)

        async def served() -> None:
            assert await findings() == []

        await eventually(served)


async def infos_of(garden: Garden) -> list[dict[str, Any]]:
    """What the micro services of this landscape say about themselves."""
    async with connect_admin(garden.nats.url, "test") as admin:
        found = await admin.request_many("$SRV.INFO")
    return [each for each in found if garden.prefix in json.dumps(each)]


async def test_the_example_scores_and_closes_regions(shared_nats_server: Server) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLE), shared_nats_server.url, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        seeds = [{"name": name, "generation": 1} for name in ("aws-eu-north-1", "gcp-us-central1", "x-ap-south-1")]
        async with jetstream.connect(shared_nats_server.url, "scheduler", "garden") as bus:
            response = await bus.request("garden.plugin.carbon", json.dumps({"seeds": seeds}).encode())
    finally:
        process.kill()
        await process.wait()
    assert json.loads(response) == {
        "scores": {"aws-eu-north-1": 96, "gcp-us-central1": 14},
        "rejected": {"x-ap-south-1": "no new clusters here until 14:00"},
        "validForSeconds": 60,
    }
    assert len(EXAMPLE.read_text().splitlines()) <= 40
