"""`gardenbus dashboard`: the link into the dashboard."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile, ServiceEntry
from gardenbus.cli.main import app
from gardenbus.common.errors import Forbidden
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.diagnostics.login_keys import read_key
from gardenbus.diagnostics.login_tokens import LINK_LIFE, Claims, verified

URL = "http://127.0.0.1:24630"


def gardenbus(*words: str) -> Result:
    return CliRunner().invoke(app, ["dashboard", *words])


@pytest.fixture
def place(tmp_path: Path) -> LandscapeDirectory:
    place = LandscapeDirectory(tmp_path)
    place.prepare()
    services = (ServiceEntry(name="relay"), ServiceEntry(name="dashboard", url=URL))
    place.write(LandscapeFile(nats_url="nats://h:1", redis_url="", services=services))
    return place


def test_the_link_is_signed_by_the_key_of_the_landscape_for_a_minute(place: LandscapeDirectory):
    key = read_key(place.dashboard_key)
    result = gardenbus("--dir", str(place.path), "--user", "ann@example.org")
    assert result.exit_code == 0, result.output
    address, _, token = result.stdout.strip().partition("#")
    assert address == f"{URL}/login"
    claims = verified(key, "link", token, SystemClock().now(), Claims)
    assert claims.user == "ann@example.org"
    with pytest.raises(Forbidden, match="expired"):
        verified(key, "link", token, SystemClock().now() + LINK_LIFE, Claims)


def test_where_nobody_has_to_log_in_it_is_the_address(place: LandscapeDirectory):
    assert gardenbus("--dir", str(place.path)).stdout == f"{URL}\n"


def test_a_dashboard_elsewhere_has_its_own_address_and_key(place: LandscapeDirectory, tmp_path: Path):
    read_key(tmp_path / "other.key")
    result = gardenbus("--url", "https://garden.example.org/", "--key-file", str(tmp_path / "other.key"))
    assert result.stdout.startswith("https://garden.example.org/login#")


def test_without_a_landscape_it_says_what_to_do(tmp_path: Path):
    result = gardenbus("--dir", str(tmp_path))
    assert result.exit_code != 0
    assert "gardenbus up" in result.output


def test_a_name_that_no_user_can_have_is_refused(place: LandscapeDirectory):
    read_key(place.dashboard_key)
    result = gardenbus("--dir", str(place.path), "--user", "Not A User")
    assert result.exit_code != 0
    assert "is no user" in result.output


@pytest.mark.parametrize("user", ["controllermanager", "identity", "seed:aws-cork"])
def test_nobody_is_let_in_as_a_service_or_an_agent(place: LandscapeDirectory, user: str):
    read_key(place.dashboard_key)
    result = gardenbus("--dir", str(place.path), "--user", user)
    assert result.exit_code == 2
    assert "that name is for others" in " ".join(result.output.split())
