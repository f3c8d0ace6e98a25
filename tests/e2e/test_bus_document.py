"""What is really sent on a landscape is what docs/reference says."""

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from nats.aio.msg import Msg

from tests.support.bus_document import BusDocument, Seen
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.landscape import Landscape

SESSION = Path(__file__).parents[2] / "examples" / "session"
LASTING = ("OBJECTS", "BINDINGS", "EVENTS", "LEASES", "REJECTED", "HISTORY")


def manifests(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((SESSION / name).read_text()))


async def play(landscape: Landscape) -> None:
    """A shoot is ordered, placed, built and deleted, another one fits nowhere, and something cannot be read."""
    apollo = manifests("shoot.yaml")[0]
    namespace, name = apollo["metadata"]["namespace"], apollo["metadata"]["name"]
    await landscape.publish("garden.apply", manifests("landscape.yaml"))
    await landscape.client.publish("garden.as.operator.apply", yaml.safe_dump(apollo).encode())
    nowhere: dict[str, Any] = json.loads(json.dumps(apollo))
    nowhere["metadata"]["name"] = "nowhere"
    nowhere["spec"]["seedSelector"] = {"matchLabels": {"there": "is-none"}}

    async def built() -> None:
        shoot = await landscape.query(f"get.shoot.{namespace}.{name}")
        assert shoot["status"]["lastOperation"]["state"] == "Succeeded"

    async def rejected() -> None:
        shoot = await landscape.query(f"get.shoot.{namespace}.nowhere")
        assert shoot["status"]["lastOperation"]["state"] == "Pending"

    async def gone() -> None:
        assert f"{namespace}/{name}" not in [
            f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in await landscape.list("shoot")
        ]

    await eventually(built)
    await landscape.query("apply", nowhere)
    await eventually(rejected)
    await landscape.client.publish("garden.apply", b"{this is no manifest")
    patch = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
    await landscape.query(f"patch.shoot.{namespace}.{name}", patch)
    await landscape.publish("garden.delete", [{"kind": "Shoot", "namespace": namespace, "name": name}])
    await eventually(gone)


@pytest.mark.slow
async def test_every_message_and_every_answer_is_as_the_document_says(hosting: Landscape) -> None:
    document = BusDocument()
    seen: list[Seen] = []

    async def take(message: Msg) -> None:
        seen.append(Seen(message.subject, dict(message.headers or {}), message.data))

    client = hosting.client
    subscription = await client.subscribe("garden.>", cb=take)  # pyright: ignore[reportUnknownMemberType]
    await play(hosting)
    for stream in LASTING:
        seen += await held(hosting, stream)

    questions = {
        "get.shoot.garden-session.nowhere": b"",
        "get.shoot.garden-session.missing": b"",
        "list.shoot": b'{"limit": 1}',
        "list.seed": b"",
        "list.event.garden-session": b"",
        "list.lease.gardener-system-seed-lease": b"",
        "explain.shoot.garden-session.nowhere": b"",
        "bind": b'{"namespace": "garden-session", "name": "nowhere", "seed": "nothing"}',
        "apply": b'{"kind": "Shoot"}',
        "kinds": b"",
        "census": b"",
        "usage": b"",
        "waiting": b"",
        "no-such-thing": b"",
    }
    responses: dict[str, bytes] = {}
    for tail, body in questions.items():
        responses[tail] = (await client.request(f"garden.api.{tail}", body, timeout=HANG_SECONDS)).data
    await subscription.unsubscribe()

    existing = [message for message in seen if not message.subject.endswith("no-such-thing")]
    faults = [fault for message in existing for fault in document.faults(message)]
    faults += [f"{tail}: {fault}" for tail, body in responses.items() for fault in document.response_faults(body)]
    for tail in ("list.shoot", "list.seed", "list.event.garden-session", "list.lease.gardener-system-seed-lease"):
        items: list[Any] = json.loads(responses[tail])["result"]["items"]
        assert items, tail
        faults += [f"{tail}: {fault}" for each in items for fault in document.object_faults(each)]
    assert not faults, "\n".join(faults[:40])
    on_channels = Counter(document.channel_of(message.subject) for message in seen)
    expected = {
        "apply", "applyAs", "delete", "changed", "binding", "view", "event", "queue.scheduling", "later",
        "lease", "report", "rejected", "api.get", "api.apply", "api.patchObject", "api.explain", "scheduler.explain",
    }  # fmt: skip
    assert expected <= on_channels.keys(), on_channels


async def held(landscape: Landscape, stream: str) -> list[Seen]:
    """What a stream holds; the server's own markers too."""
    found: list[Seen] = []
    number = 1
    while True:
        question = json.dumps({"seq": number, "next_by_subj": ">"}).encode()
        response = json.loads(
            (await landscape.client.request(f"$JS.API.STREAM.MSG.GET.{stream}", question, timeout=HANG_SECONDS)).data
        )
        if "message" not in response:
            return found
        message = response["message"]
        lines = base64.b64decode(message.get("hdrs", "")).decode().split("\r\n")[1:-2]
        headers = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        found.append(Seen(message["subject"], headers, base64.b64decode(message.get("data", ""))))
        number = message["seq"] + 1
