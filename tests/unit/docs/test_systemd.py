"""The systemd units: systemd takes them, and every service reads the settings that they give it."""

import configparser
import importlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gardenbus.apiserver.settings import ApiserverSettings
from gardenbus.common.runtime.settings import load
from gardenbus.identity.settings import IdentitySettings
from gardenbus.placement.settings import PlacementSettings
from gardenbus.relay.settings import RelayServiceSettings
from tests.support.eventually import HANG_SECONDS

ROOT = Path(__file__).parents[3]
UNITS = ROOT / "deploy" / "systemd"
COMPOSE = ROOT / "deploy" / "compose"
ENVIRONMENTS = sorted(file.stem for file in (UNITS / "environment").glob("*.env"))
INSTANCES = [name for name in ENVIRONMENTS if name not in {"common", "store"}]
WITHOUT_ARGUMENTS: dict[str, Any] = {
    "apiserver": ApiserverSettings,
    "identity": IdentitySettings,
    "placement": PlacementSettings,
    "relay": RelayServiceSettings,
}


def environment(*names: str) -> dict[str, str]:
    """What systemd reads from these files, the last one counts."""
    lines = [line for name in names for line in (UNITS / "environment" / f"{name}.env").read_text().splitlines()]
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def unit(file: Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    parser.read(file)
    return parser


def read_settings(instance: str) -> Any:
    """The settings as the service reads them, with the configuration files of the compose deployment."""
    given = {"GARDENBUS_SERVICE": instance, **environment("common", "store", instance)}
    service, arguments = given.pop("GARDENBUS_SERVICE"), shlex.split(given.pop("ARGUMENTS", ""))
    if service in WITHOUT_ARGUMENTS:
        assert not arguments
        return load(WITHOUT_ARGUMENTS[service], environ=given)
    load_settings: Callable[..., Any] = importlib.import_module(f"gardenbus.{service}.settings").load_settings
    return load_settings([each.replace("/etc/gardenbus", str(COMPOSE)) for each in arguments], environ=given)


def test_there_is_an_environment_for_every_service_without_state():
    services = {path.name for path in (ROOT / "services").iterdir()} - {"gardenlet", "memberagent"}
    assert services == {environment(name).get("GARDENBUS_SERVICE", name) for name in INSTANCES}


@pytest.mark.parametrize("instance", INSTANCES)
def test_each_service_reads_its_settings_from_what_its_unit_gives_it(instance: str):
    settings = read_settings(instance)
    assert settings.health_port == int(environment(instance)["GARDENBUS_HEALTH_PORT"])
    assert settings.nats_url == environment("common")["GARDENBUS_NATS_URL"]
    fields: tuple[str, ...] = settings.__struct_fields__
    existing = {f"GARDENBUS_{field.upper()}" for field in fields}
    assert environment("common", "store", instance).keys() - existing <= {"ARGUMENTS", "GARDENBUS_SERVICE"}


def test_no_two_services_of_a_machine_share_a_port():
    ports = [environment(name)["GARDENBUS_HEALTH_PORT"] for name in INSTANCES]
    assert len({*ports}) == len(ports)


@pytest.mark.parametrize("service", ["gardenlet", "memberagent"])
def test_an_agent_has_a_state_directory_and_does_not_know_where_redis_is(service: str):
    section = unit(UNITS / f"gardenbus-{service}@.service")["Service"]
    assert f"-m gardenbus.{service} " in section["ExecStart"]
    assert section["ExecStart"].endswith(f"--state-dir /var/lib/{section['StateDirectory']}")
    assert "store.env" not in (UNITS / f"gardenbus-{service}@.service").read_text()


@pytest.mark.parametrize("file", sorted(UNITS.glob("*.service")), ids=lambda file: file.name)
def test_a_service_is_started_again_unless_its_settings_are_invalid(file: Path):
    read = unit(file)
    assert read["Service"]["Restart"] == "always"
    assert read["Service"]["RestartPreventExitStatus"] == "2"
    assert read["Install"]["WantedBy"] == "gardenbus.target"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_every_unit(tmp_path: Path):
    for file in [*UNITS.glob("*.service"), *UNITS.glob("*.target")]:
        text = re.sub(r"/opt/gardenbus/bin/python", sys.executable, file.read_text())
        (tmp_path / file.name.replace("@.", "@one.")).write_text(text)
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))],
        check=False,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    ours = [line for line in verified.stderr.splitlines() if "gardenbus" in line]
    assert (verified.returncode, ours) == (0, [])
