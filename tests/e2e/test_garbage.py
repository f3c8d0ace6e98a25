"""Whatever arrives on any subject, no service ends, nothing stays in a queue, and orders are carried out as ever."""

from pathlib import Path

import pytest
import yaml

from tests.fuzz.wire import WireFuzzer
from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot
from tests.support.eventually import eventually
from tests.support.garbage import RawPublisher, garbage
from tests.support.landscape import a_landscape
from tests.support.wire_checks import AGENT, processes, unfinished

DELETIONS = (b"garden.api.delete.seed.seed-a", b"garden.api.delete.seed._.seed-a")
"""Requests that are no garbage: with `--insecure` everybody is the operator, and may delete the seed."""


@pytest.mark.slow
async def test_garbage_on_every_subject_harms_nobody(tmp_path: Path) -> None:
    file = tmp_path / "landscape.yaml"
    file.write_text(yaml.safe_dump_all([a_gardenlet_configuration(), a_project(), a_cloudprofile(), dict(AGENT)]))
    async with a_landscape(tmp_path / "state", "--insecure", "-f", str(file)) as landscape:

        async def populated() -> None:
            assert len(await landscape.list("seed")) == len(await landscape.list("membercluster")) == 1

        await eventually(populated)
        before = processes(landscape)
        publisher = await RawPublisher.connect(landscape.describe()["nats_url"])
        for message in garbage("garden", seed=1, per_channel=200):
            if message.subject not in DELETIONS:
                await publisher.publish(message)
        errors = await publisher.close()
        assert all(b"Invalid" in error for error in errors), errors[:3]
        await eventually(lambda: landscape.query("apply", a_shoot("apollo")))  # 429 while garbage is in flight

        async def placed() -> None:
            shoot = await landscape.query("get.shoot.garden-dev.apollo")
            assert shoot["status"]["lastOperation"]["state"] == "Succeeded"

        async def drained() -> None:
            assert await unfinished(landscape) == []

        await eventually(placed)
        await eventually(drained)
        findings = await WireFuzzer(landscape, seed=1).run(1_000)
        assert findings.found == {}, findings.lines()
        assert processes(landscape) == before
