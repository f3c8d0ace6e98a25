"""`token` and `certificate` as they are called, on the real apiserver in memory."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gardenbus.cli.commands import options
from gardenbus.cli.main import app
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import (
    key_of_request,
    new_signing_request,
    with_certificate,
)
from gardenbus.common.api.keys import ObjectKey
from gardenbus.credentials.certificates import new_key, new_request
from tests.support.builders import a_seed
from tests.support.fleets import a_member_document
from tests.support.memory_api import MemoryApi

REVOKED = ObjectKey("configmap", "garden", "revoked-credentials")


@pytest.fixture
def landscape(monkeypatch: pytest.MonkeyPatch) -> MemoryApi:
    """A landscape for the command line."""
    landscape = MemoryApi()
    monkeypatch.setattr(options, "connected", landscape.connected)

    def nowhere(*_: object) -> None:
        """Nothing has to be found."""

    monkeypatch.setattr(options, "find_landscape", nowhere)
    return landscape


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.mark.usefixtures("landscape")
def test_a_token_is_shown_once_and_listed_without_its_secret() -> None:
    made = run("token", "create", "--seed", "aws-cork", "--ttl", "2h", "--description", "the third rack")
    assert made.exit_code == 0, made.output
    token = made.stdout.strip()
    listed = run("token", "list")
    assert token[:6] in listed.stdout
    assert "seed:aws-cork" in listed.stdout
    assert "the third rack" in listed.stdout
    assert token[7:] not in listed.output + run("token", "list", "-o", "json").output
    assert run("token", "list", "-o", "name").stdout.split() == [token[:6]]
    assert run("token", "delete", token).exit_code == 0
    assert "there are no bootstrap tokens" in run("token", "list").output


def test_a_life_that_cannot_be_read_is_refused_before_anything_is_sent() -> None:
    assert run("token", "create", "--ttl", "soon").exit_code == 2


@pytest.mark.usefixtures("landscape")
@pytest.mark.parametrize(
    "words",
    [
        ("token", "create", "--ttl", "8d"),
        ("token", "delete", "../x"),
        ("token", "create", "--seed", "A", "--member", "b"),
    ],
)
def test_impossible_tokens_are_refused(words: tuple[str, ...]) -> None:
    assert run(*words).exit_code in (1, 2)


def test_requests_are_shown_approved_and_denied(landscape: MemoryApi) -> None:
    async def prepare() -> None:
        for name in ("one", "two"):
            await landscape.store.create(new_signing_request(name, new_request(Principal("user", "ann"), new_key())))

    asyncio.run(prepare())
    assert "Pending" in run("get", "csr").stdout
    assert run("certificate", "approve", "one").exit_code == 0
    assert run("certificate", "deny", "two", "-m", "who is that?").exit_code == 0
    assert run("certificate", "approve", "two").exit_code == 1
    assert run("certificate", "approve", "three").exit_code == 1
    shown = run("get", "csr").stdout
    assert "Approved" in shown
    assert "Denied" in shown
    stored = asyncio.run(landscape.store.get(key_of_request("two")))
    assert stored is not None
    assert stored.document()["status"]["conditions"][0]["message"] == "who is that?"


def revoked(landscape: MemoryApi) -> dict[str, str]:
    stored = asyncio.run(landscape.store.get(REVOKED))
    return json.loads(stored.encoded())["data"] if stored is not None else {}


def test_seeds_users_and_serial_numbers_are_revoked_one_after_another(landscape: MemoryApi, tmp_path: Path) -> None:
    serial, now = "497ace1151364eee1a7e1664b5fb60bee9e6cfac", "2026-03-01T12:00:00Z"
    signed = new_signing_request("one", new_request(Principal("user", "eve"), new_key()))
    recorded = with_certificate(signed, b"its certificate", serial=serial, not_after=now, user="seed:aws-cork")
    asyncio.run(landscape.create([a_seed("aws-cork"), a_member_document("paris"), recorded]))
    assert run("identity", "issue", "--user", "ann", "-o", str(tmp_path / "ann.json")).exit_code == 0
    for what in ("aws-cork", "member:paris", "ann", "eve", serial):
        revoking = run("certificate", "revoke", what, "--reason", "stolen")
        assert revoking.exit_code == 0, revoking.output
    lines = revoked(landscape)
    assert set(lines) == {"seed:aws-cork", "member:paris", "ann", "eve", serial}
    assert all(line.endswith("Z stolen") for line in lines.values())


@pytest.mark.parametrize("what", ["aws-crok", "seed:aws-crok", "member:paris", "anne", "scheduler:x", "0" * 40])
def test_what_nobody_knows_is_revoked_when_that_is_meant_alone(landscape: MemoryApi, what: str) -> None:
    asyncio.run(landscape.create([a_seed("aws-cork")]))
    misspelt = run("certificate", "revoke", what)
    assert misspelt.exit_code == 1
    assert f"nothing of the name {what} is known" in misspelt.output
    assert "revoked:" not in misspelt.output
    assert not revoked(landscape)
    assert run("certificate", "revoke", what, "--force").exit_code == 0
    assert set(revoked(landscape)) == {what}


@pytest.mark.usefixtures("landscape")
def test_what_is_no_name_is_not_revoked() -> None:
    assert run("certificate", "revoke", "Nobody At All").exit_code == 2
