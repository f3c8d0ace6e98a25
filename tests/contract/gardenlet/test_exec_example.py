"""The command of examples/exec behaves as every maker does: repeated, cut, fenced off, restarted, half made, moved."""

import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.maker_conformance import MakerConformance
from tests.support.seed_backends import a_local_backend
from tests.support.stand_ins import STAND_IN, servers_below


@pytest.fixture(autouse=True)
def no_server_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    left = servers_below(tmp_path)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert left == []


class TestTheStandIn(MakerConformance):
    cuts = (0, 3)

    def backend(self, directory: Path) -> SeedBackend:
        options = {"commands": {"default": [sys.executable, "-S", str(STAND_IN)]}, "killAfterSeconds": 0.5}
        return a_local_backend(directory, ShootBackendSettings(type="exec", options=options))

    def left(self, directory: Path) -> list[str]:
        return [*map(str, (directory / "exec").glob("*")), *map(str, servers_below(directory))]

    @pytest.mark.long
    def test_a_gardenlet_that_is_killed_in_each_step_leaves_nothing_behind(self, tmp_path: Path) -> None:
        super().test_a_gardenlet_that_is_killed_in_each_step_leaves_nothing_behind(tmp_path)


def given(directory: Path, step: str, spec: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    return {
        "step": step, "shoot": {"technicalID": "shoot--dev--apollo"}, "seed": {"directory": str(directory)},
        "spec": spec, "kept": kept,
    }  # fmt: skip


def call(directory: Path, step: str, spec: dict[str, Any] | None = None, **kept: Any) -> tuple[int, dict[str, Any]]:
    """Exit code and answer of a step."""
    ended = subprocess.run(
        [sys.executable, "-S", str(STAND_IN)],
        input=json.dumps(given(directory, step, spec or {}, kept)),
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    return ended.returncode, json.loads(ended.stdout)


def made(directory: Path) -> dict[str, Any]:
    """The authority of a shoot whose server runs."""
    assert call(directory, "namespace") == (0, {})
    code, reply = call(directory, "secrets")
    assert code == 0
    assert call(directory, "control-plane", {"region": "here"})[0] == 0
    return reply["kept"]


def remove(directory: Path) -> None:
    for step in ("delete-control-plane", "delete-namespace"):
        assert call(directory, step) == (0, {})


def test_a_production_shoot_is_refused_for_good(tmp_path: Path) -> None:
    code, reply = call(tmp_path, "namespace", {"purpose": "production"})
    assert code == 1
    assert reply["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_answer_is_waited_for_and_is_a_problem(tmp_path: Path) -> None:
    code, reply = call(tmp_path, "wait-for-api-server")
    assert code == 75
    assert reply["message"].startswith("The server does not respond: ")
    assert call(tmp_path, "health")[1]["problems"].keys() == {"APIServerAvailable"}


def test_a_shoot_that_sleeps_has_no_server_and_wakes_with_its_authority(tmp_path: Path) -> None:
    authority = made(tmp_path)
    asleep = {"hibernation": {"enabled": True}}
    assert call(tmp_path, "control-plane", asleep) == (0, {"kept": {"hibernated": True}})
    assert servers_below(tmp_path) == []
    assert call(tmp_path, "wait-for-api-server", asleep, **{"control-plane": {"hibernated": True}}) == (0, {})
    assert call(tmp_path, "control-plane") == (0, {"kept": {}})
    assert call(tmp_path, "secrets", secrets=authority) == (0, {"kept": authority})
    assert len(servers_below(tmp_path)) == 1
    remove(tmp_path)


async def test_a_shoot_keeps_its_authority_on_another_seed(tmp_path: Path) -> None:
    source, destination = tmp_path / "source", tmp_path / "destination"
    for directory in (source, destination):
        directory.mkdir()
    authority = made(source)
    for step in ("stop-control-plane", "release-namespace"):
        assert call(source, step) == (0, {})
    assert list(source.iterdir()) == []
    call(destination, "namespace")
    assert call(destination, "secrets", secrets=authority) == (0, {"kept": authority})
    call(destination, "control-plane", {"region": "there"})
    trusted = ssl.create_default_context(cadata=authority["ca.crt"])

    async def responses() -> None:
        assert call(destination, "wait-for-api-server") == (0, {})

    await eventually(responses)
    url = (destination / "shoot--dev--apollo" / "url").read_text()
    with urlopen(f"{url}/shoot.json", context=trusted, timeout=HANG_SECONDS) as response:
        assert json.load(response) == {"region": "there"}
    remove(destination)
