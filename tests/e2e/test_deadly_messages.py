"""A request that ends whatever handles it: one death of a service, a dead letter, and all others carried out."""

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import a_project
from tests.support.eventually import eventually
from tests.support.landscape import Landscape, a_landscape

DEADLY = """
    import os, signal
    import gardenbus.common.api.manifests.parser as parser

    read = parser.parse

    def parse(body, **options):
        if b"computes-forever" in body:
            while True:
                pass
        if b"takes-all-memory" in body:
            os.kill(os.getpid(), signal.SIGKILL)
        return read(body, **options)

    parser.parse = parse
"""
"""Imported by each process at its start: services that have a fault, for certain words in a manifest."""


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "garden-dev"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def rejections(landscape: Landscape) -> list[dict[str, Any]]:
    listed = await landscape.command("rejected", "-o", "json")
    return json.loads(listed.stdout)["items"] if listed.code == 0 else []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "reason"), [("computes-forever", "1 s of processor time"), ("takes-all-memory", "ended by SIGKILL")]
)
async def test_a_request_that_kills_its_handler_is_rejected_after_the_second_try_and_the_others_are_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, reason: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(DEADLY))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("GARDENBUS_WATCHDOG_SECONDS", "1")
    async with a_landscape(tmp_path / "state", "--insecure") as landscape:
        await landscape.query("apply", a_project(), timeout=60)
        (before,) = landscape.pids("apiserver")
        names = [f"beside-{number}" for number in range(20)]
        for name in names[:10]:
            await landscape.publish("garden.apply", [config_map(name)])
        await landscape.publish("garden.apply", [config_map("deadly", word=word)])
        for name in names[10:]:
            await landscape.publish("garden.apply", [config_map(name)])

        async def rejected() -> None:
            messages = [each["message"] for each in await rejections(landscape)]
            assert len(messages) == 1
            assert "killed its handler twice, the second time alone" in messages[0]
            assert reason in messages[0]

        async def carried_out() -> None:
            stored = await landscape.list("configmap")
            assert {each["metadata"]["name"] for each in stored} >= set(names)

        await eventually(rejected, within=120)
        await eventually(carried_out, within=60)
        (after,) = landscape.pids("apiserver")
        assert after != before
        log = (tmp_path / "state-up.log").read_text().splitlines()
        assert sum("apiserver" in line and "starting it again" in line for line in log) == 1
