"""`auth`: what a user may do, in kubectl's words."""

import asyncio
import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from gardenbus.cli.commands import options
from gardenbus.cli.main import app
from gardenbus.common.api.identity.roles import landscape_roles
from tests.support.builders import a_project
from tests.support.memory_api import MemoryApi

Run = Callable[..., Result]


def _running(api: MemoryApi, monkeypatch: pytest.MonkeyPatch) -> Run:
    members = {"members": [{"kind": "User", "name": "ann", "role": "admin"}]}
    asyncio.run(api.create([landscape_roles({"eve": "viewer"}), a_project("dev", "garden-dev", spec=members)]))

    def call(*words: str) -> Result:
        monkeypatch.setattr(options, "connected", api.connected)
        return CliRunner().invoke(app, ["auth", *words, "--nats-url", "nats://nowhere:1"])

    return call


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return _running(MemoryApi(is_authorizing=True), monkeypatch)


def test_yes_is_said_with_exit_code_0(run: Run) -> None:
    ended = run("can-i", "create", "shoots", "-n", "garden-dev", "--as", "ann")
    assert (ended.stdout, ended.exit_code) == ("yes\n", 0)


def test_no_is_said_with_what_would_be_needed_and_exit_code_1(run: Run) -> None:
    ended = run("can-i", "delete", "secret/cloud", "-n", "garden-prod", "--as", "ann")
    assert ended.stdout.startswith('no - user "ann" cannot delete secrets in namespace "garden-prod": ')
    assert ended.exit_code == 1
    ended = run("can-i", "create", "shoots", "--as", "ann", "-q")
    assert (ended.stdout, ended.exit_code) == ("", 1)


def test_subresources_and_requests_about_the_landscape_are_asked_for_too(run: Run) -> None:
    assert run("can-i", "create", "shoots/binding", "-n", "garden-dev", "--as", "ann").exit_code == 1
    assert run("can-i", "create", "shoots/binding", "-n", "garden-dev").exit_code == 0
    assert run("can-i", "census", "--as", "eve").exit_code == 0
    assert run("can-i", "census", "--as", "ann").exit_code == 1


def test_the_list_has_verbs_by_kind(run: Run) -> None:
    lines = run("can-i", "--list", "-n", "garden-dev", "--as", "ann").stdout.splitlines()
    assert lines[0].split() == ["Resources", "Verbs"]
    secrets = next(line for line in lines if line.startswith("secrets "))
    assert secrets.split("   ")[-1].strip() == "[get list watch create update patch delete]"
    assert not any(line.startswith("leases") for line in lines)


def test_whoami_shows_user_groups_and_role(run: Run) -> None:
    assert "Username    operator" in run("whoami").stdout
    assert json.loads(run("whoami", "-o", "json").stdout)["groups"] == ["system:masters"]


@pytest.mark.parametrize("words", [("can-i",), ("can-i", "get", "shoots", "--list"), ("can-i", "a", "b", "c")])
def test_other_words_are_a_usage_error(run: Run, words: tuple[str, ...]) -> None:
    assert run(*words).exit_code == 2


def test_a_verb_or_kind_that_is_none_is_named(run: Run) -> None:
    assert run("can-i", "gte", "shoots").exit_code == 1
    assert run("can-i", "get", "shots").exit_code == 2


def test_without_identities_everybody_may_do_everything_and_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = _running(MemoryApi(), monkeypatch)("can-i", "delete", "secrets", "--as", "ann")
    assert ended.stdout == "yes - this landscape has no identities: everybody may do everything\n"
