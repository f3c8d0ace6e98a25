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

DEADLY_WORDS = {"computes-forever": "1 s of processor time", "takes-all-memory": "ended by SIGKILL"}
"""Words, each with the reason that the rejected message states."""


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "garden-dev"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def rejections(landscape: Landscape) -> list[dict[str, Any]]:
    listed = await landscape.command("rejected", "-o", "json")
    return json.loads(listed.stdout)["items"] if listed.code == 0 else []


@pytest.mark.slow
async def test_a_request_that_kills_its_handler_is_rejected_after_the_second_try_and_the_others_are_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(DEADLY))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("GARDENBUS_WATCHDOG_SECONDS", "1")
    async with a_landscape(tmp_path / "state", "--insecure") as landscape:
        await landscape.query("apply", a_project(), timeout=60)
        for number, (word, reason) in enumerate(DEADLY_WORDS.items(), start=1):
            await check_death(landscape, word, reason)
            log = (tmp_path / "state-up.log").read_text().splitlines()
            assert sum("apiserver" in line and "starting it again" in line for line in log) == number


async def check_death(landscape: Landscape, word: str, reason: str) -> None:
    """Send a deadly request among others: it alone is rejected, for this reason, and the apiserver dies once."""
    (before,) = landscape.pids("apiserver")
    names = [f"beside-{list(DEADLY_WORDS).index(word)}-{number}" for number in range(20)]
    deadly = config_map("deadly", word=word)
    for document in (*map(config_map, names[:10]), deadly, *map(config_map, names[10:])):
        await landscape.publish("garden.apply", [document])

    async def rejected() -> None:
        messages = [each["message"] for each in await rejections(landscape)]
        assert len(messages) == 1 + list(DEADLY_WORDS).index(word)
        (message,) = (each for each in messages if reason in each)
        assert "killed its handler twice, the second time alone" in message

    async def carried_out() -> None:
        stored = await landscape.list("configmap")
        assert {each["metadata"]["name"] for each in stored} >= set(names)

    await eventually(rejected)
    await eventually(carried_out)
    (after,) = landscape.pids("apiserver")
    assert after != before
