"""Whatever arrives on any subject, no service ends, nothing stays in a queue, and orders are carried out as ever."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot
from tests.support.eventually import eventually
from tests.support.garbage import RawPublisher, garbage
from tests.support.landscape import Landscape, a_landscape

QUEUES = ("scheduling.default-scheduler", "waking", "migration", "garbage", "managedseedset", "autoscaler", "placement")
SERVED = tuple(f"garden.queue.{queue}." for queue in QUEUES)

AGENT: Mapping[str, Any] = {
    "apiVersion": "memberagent.config.gardenbus.io/v1alpha1",
    "kind": "MemberAgentConfiguration",
    "metadata": {"name": "one"},
    "clusters": [{"metadata": {"name": "m"}}],
}


def processes(landscape: Landscape) -> dict[str, int]:
    return {service["name"]: service["pid"] for service in landscape.describe()["services"]}


async def unfinished(landscape: Landscape) -> list[str]:
    """Subjects with messages in work queues that somebody serves."""
    found: list[str] = []
    for stream in ("REQUESTS", "REPORTS", "QUEUES"):
        answer = await landscape.client.request(f"$JS.API.STREAM.INFO.{stream}", b'{"subjects_filter": ">"}')
        subjects: dict[str, int] = json.loads(answer.data)["state"].get("subjects") or {}
        found += subjects
    return [subject for subject in found if not subject.startswith(("garden.later.", "garden.queue."))] + [
        subject for subject in found if subject.startswith(SERVED)
    ]


@pytest.mark.slow
async def test_garbage_on_every_subject_harms_nobody(tmp_path: Path) -> None:
    file = tmp_path / "landscape.yaml"
    file.write_text(yaml.safe_dump_all([a_gardenlet_configuration(), a_project(), a_cloudprofile(), dict(AGENT)]))
    async with a_landscape(tmp_path / "state", "-f", str(file)) as landscape:

        async def populated() -> None:
            assert len(await landscape.list("seed")) == len(await landscape.list("membercluster")) == 1

        await eventually(populated, within=60)
        before = processes(landscape)
        publisher = await RawPublisher.connect(landscape.describe()["nats_url"])
        for message in garbage("garden", seed=1, per_channel=200):
            await publisher.publish(message)
        errors = await publisher.close()
        assert all(b"Invalid" in error for error in errors), errors[:3]
        await landscape.ask("apply", a_shoot("apollo"), timeout=60)

        async def placed() -> None:
            shoot = await landscape.ask("get.shoot.garden-dev.apollo")
            assert shoot["status"]["lastOperation"]["state"] == "Succeeded"

        async def drained() -> None:
            assert await unfinished(landscape) == []

        await eventually(placed, within=90)
        await eventually(drained, within=120)
        assert processes(landscape) == before
