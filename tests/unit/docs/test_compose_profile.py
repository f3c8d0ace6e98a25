"""The compose profile `observability`, as Docker Compose reads it. Needs no engine."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.api.configuration.scheduler import parse_configuration
from tests.support.eventually import HANG_SECONDS
from tests.support.promtool import ROOT

COMPOSE = ROOT / "deploy" / "compose" / "compose.yaml"
WATCHERS = {"prometheus", "grafana"}


def _has_compose() -> bool:
    if shutil.which("docker") is None:
        return False
    requested = subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=HANG_SECONDS, check=False)
    return requested.returncode == 0


pytestmark = pytest.mark.skipif(not _has_compose(), reason="there is no Docker Compose here")


def read(*arguments: str) -> dict[str, Any]:
    ended = subprocess.run(
        ["docker", "compose", "-f", str(COMPOSE), *arguments, "config", "--format", "json"],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_who_does_not_ask_for_it_gets_neither_prometheus_nor_grafana():
    assert not WATCHERS & set(read()["services"])


def test_both_come_with_the_profile_on_the_loopback_only_and_what_they_mount_is_there():
    services = read("--profile", "observability")["services"]
    assert set(services) >= WATCHERS
    for name in WATCHERS:
        assert [port["host_ip"] for port in services[name]["ports"]] == ["127.0.0.1"]
        for volume in services[name]["volumes"]:
            if volume["type"] == "bind":
                assert (ROOT / volume["source"]).exists(), volume
                assert volume["read_only"]


def test_prometheus_reaches_every_service_of_ours_and_grafana_only_prometheus():
    services = read("--profile", "observability")["services"]
    ours = {name for name, service in services.items() if service["image"].startswith("gardenbus/")}
    networks = {name: set(service["networks"]) for name, service in services.items()}
    assert all(networks["prometheus"] & networks[name] for name in ours)
    assert {name for name in services if networks["grafana"] & networks[name]} == WATCHERS


def test_the_second_scheduler_has_a_name_of_its_own_and_the_settings_of_the_first():
    services = read("--profile", "second-scheduler")["services"]
    first, second = services["scheduler"], services["scheduler-mine"]
    for name in ("image", "environment", "networks", "depends_on"):
        assert second[name] == first[name], name
    (mounted,) = second["volumes"]
    assert parse_configuration(Path(mounted["source"]).read_bytes()).scheduler_name == "mine"
    assert "scheduler-mine" not in read()["services"]
