"""`gardenbus up --cluster`: three servers of NATS, a Redis with replicas and Sentinels, and one of each that goes."""

import asyncio
import json
import os
import re
import signal
import subprocess
from collections import Counter
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_up import described, gardenbus, pid_of
from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot
from tests.support.commands import INSTALLED, gardenbus_program
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.sessions import ROOT

SERVERS = (
    *("nats-1", "nats-2", "nats-3"),
    *("redis-1", "redis-2", "redis-3"),
    *("sentinel-1", "sentinel-2", "sentinel-3"),
)

pytestmark = pytest.mark.long


def a_landscape_file(directory: Path) -> Path:
    file = directory / "landscape.yaml"
    documents: list[dict[str, Any]] = [a_gardenlet_configuration(shoots=400), a_project(), a_cloudprofile()]
    file.write_text("\n---\n".join(json.dumps(document) for document in [*documents, a_shoot("apollo")]))
    return file


def primary_of(directory: Path) -> str:
    """Name of the Redis that the first Sentinel's file calls the master."""
    text = (directory / "config" / "sentinel-1.conf").read_text()
    monitored = re.search(r"^sentinel monitor garden \S+ (\d+) ", text, re.MULTILINE)
    assert monitored
    ports: dict[str, int] = described(directory)["ports"]
    return next(name for name, port in ports.items() if name.startswith("redis-") and port == int(monitored[1]))


async def apply_shoot(directory: Path, name: str) -> None:
    """Order a shoot as often as it takes: it is refused while there is no master."""
    file = directory.parent / f"{name}.json"
    file.write_text(json.dumps(a_shoot(name)))

    async def applied() -> None:
        command = (str(gardenbus_program()), "apply", "--dir", str(directory), "-f", str(file))
        process = await asyncio.create_subprocess_exec(*command)
        try:
            assert await asyncio.wait_for(process.wait(), HANG_SECONDS) == 0
        except TimeoutError as error:  # the request went to a server that hangs
            process.kill()
            await process.wait()
            raise AssertionError from error

    await eventually(applied)


async def test_a_cluster_goes_on_without_one_server_of_each_and_starts_again_as_it_was(tmp_path: Path) -> None:
    place, file = tmp_path / "lab", a_landscape_file(tmp_path)
    up = ("up", "--cluster", "--dir", str(place), "-f", str(file), "--detach")
    started = await gardenbus(*up)
    assert started.code == 0, started.stderr
    try:
        old = primary_of(place)
        paused = [pid_of(place, old), pid_of(place, "nats-2")]
        for pid in paused:
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)
        await apply_shoot(place, "zephyr")
        assert primary_of(place) != old
        for pid in paused:
            assert pid is not None
            os.kill(pid, signal.SIGCONT)

        async def is_well() -> None:
            doctor = await gardenbus("doctor", "--dir", str(place), "-o", "json")
            findings: list[dict[str, str]] = json.loads(doctor.stdout)["findings"]
            checks = {finding["check"]: finding for finding in findings}
            assert not [finding for finding in findings if finding["state"] not in ("ok", "skipped")]
            assert "leads" in checks["nats copies"]["found"]
            assert checks["redis replicas"]["found"].count("online") == 2

        await eventually(is_well, every=2)
        now = primary_of(place)
        assert (await gardenbus("down", "--dir", str(place))).code == 0
        assert (await gardenbus(*up)).code == 0
        assert primary_of(place) == now
        shoots = await gardenbus("get", "shoots", "-A", "--dir", str(place))
        assert "zephyr" in shoots.stdout
        mixed = await gardenbus("up", "--dir", str(place))
        assert mixed.code != 0
    finally:
        await gardenbus("down", "--dir", str(place))
    alone = await gardenbus("up", "--dir", str(place), "--detach")
    assert alone.code != 0
    assert "start with --cluster" in alone.stderr


def the_documented_script() -> str:
    page = (ROOT / "docs" / "operating.md").read_text()
    found = re.search(r"<!-- run by: tests/e2e/test_cluster.py -->\n```sh\n(.*?)```", page, re.DOTALL)
    assert found
    return found[1]


STATUS = """\
 SERVICE   STATE       PID     ADDRESS
 nats-1    ready       101     nats://127.0.0.1:4222, streams 12
 nats-2    not ready   102     503: JetStream is not current
 nats-3    ready       103     nats://127.0.0.1:4223
 redis-1   ready       104     primary of 2 replicas
 redis-2   not ready   105     ConnectionRefusedError
 redis-3   ready       106     replica
 sentinel-1  ready     107     127.0.0.1:26379
 sentinel-2  not ready 108     it runs, and does not respond within 2 s
 sentinel-3  ready     109     127.0.0.1:26381
"""


def test_the_script_finds_the_process_of_each_server_also_of_one_that_is_not_ready(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(STATUS)
    (tmp_path / "doctor").write_text("ok   nats copies   3\nok   redis replicas   2\nok   recovery   none\n")
    stubs = 'gardenbus() { cat "$1"; }; kill() { echo "$1"; }; sleep() { :; }\n'
    ended = subprocess.run(
        ["sh", "-e", "-c", stubs + the_documented_script()], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["101", "102", "103", "104", "105", "106", "107", "108", "109"]


async def test_servers_are_upgraded_one_by_one_under_load(tmp_path: Path) -> None:
    place, file = tmp_path / ".gardenbus", a_landscape_file(tmp_path)
    started = await gardenbus("up", "--cluster", "--dir", str(place), "-f", str(file), "--detach")
    assert started.code == 0, started.stderr
    try:
        before = {name: pid_of(place, name) for name in SERVERS}

        def replaced() -> list[str]:
            return [name for name, pid in before.items() if pid_of(place, name) != pid]

        environ = {**os.environ, "PATH": f"{gardenbus_program().parent}:{INSTALLED.parent}:{os.environ['PATH']}"}
        script = await asyncio.create_subprocess_exec(
            "sh", "-e", "-c", the_documented_script(), cwd=tmp_path, env=environ
        )
        acknowledged: list[str] = []
        during: Counter[str] = Counter()  # acknowledgements by the server that was replaced last

        async def order(prefix: str) -> None:
            for number in count():
                await apply_shoot(place, f"{prefix}-{number}")
                acknowledged.append(f"{prefix}-{number}")
                during.update(replaced()[-1:])
                if script.returncode is not None:
                    return

        await asyncio.gather(order("left"), order("right"))
        assert script.returncode == 0
        assert replaced() == [*SERVERS]
        without = {name for name in SERVERS if not during[name]}
        assert [two for two in pairwise(SERVERS) if without >= {*two}] == [], "orders wait for one server at most"
        stored = json.loads((await gardenbus("get", "shoots", "-A", "-o", "json", "--dir", str(place))).stdout)
        names = {each["metadata"]["name"] for each in stored["items"]}
        assert [name for name in acknowledged if name not in names] == []
        status = await gardenbus("status", "--dir", str(place))
        assert "primary of 2 replicas" in status.stdout
        assert status.stdout.count("streams") == 3
    finally:
        await gardenbus("down", "--dir", str(place))
