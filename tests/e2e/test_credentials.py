"""Credentials at the command line: kept in contexts, and refused by name."""

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gardenbus.common.api.identity.principals import Principal
from gardenbus.credentials.certificates import Authority, new_authority
from gardenbus.credentials.identity_directory import IdentityDirectory
from tests.support.commands import gardenbus_program
from tests.support.landscape import Ended, Landscape, authorities_of, ended

ELEANOR = Principal("user", "eleanor")


class Client:
    """Somebody with a config file of their own, who knows no landscape's directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config = directory / "config.yaml"

    async def call(self, *arguments: str, given: str = "", **environment: str) -> Ended:
        """Run `gardenbus` to its end."""
        outside = {name: value for name, value in os.environ.items() if not name.startswith("GARDENBUS_")}
        process = await asyncio.create_subprocess_exec(
            str(gardenbus_program()),
            *arguments,
            cwd=self.directory,
            env={**outside, "GARDENBUS_CONFIG": str(self.config), **environment},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(given.encode())
        process.stdin.close()
        return await ended(process)


async def test_who_logs_in_acts_as_themselves_in_a_context(hosting: Landscape, tmp_path: Path):
    client = Client(tmp_path)
    login = ("login", "lab", "--dir", str(hosting.directory), "--user", "eleanor", "--role", "viewer", "--ttl", "1h")
    made = await client.call(*login)

    assert made.code == 0, made
    assert made.stdout.startswith("context lab: eleanor (viewer), the current one; ")
    kept = tmp_path / "credentials" / "lab.json"
    password = json.loads(kept.read_text())["password"]
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    seeds = await client.call("get", "seeds", "-o", "name")
    assert "seed.core.gardener.cloud/earth-1" in seeds.stdout.splitlines()
    written = await client.call("create", "-f", "-", given='{"apiVersion": "v1", "kind": "ConfigMap", '
                                '"metadata": {"name": "eleanors", "namespace": "garden"}}')  # fmt: skip
    assert (written.code, "eleanor" in written.stderr) == (1, True), written
    followed = await client.call("top", "queues", "--once")
    assert (followed.code, "may not read streams" in followed.stderr) == (1, True), followed
    assert password not in (await client.call("config", "view", "--raw")).stdout

    typed = await client.call("login", "typed", "--nats-url", hosting.describe()["nats_url"], "--user", "eleanor",
                              "--ca", authorities_of(hosting.directory), given=f"{password}\n")  # fmt: skip
    assert typed.code == 0, typed
    mistyped = await client.call("login", "never", "--nats-url", hosting.describe()["nats_url"], "--user", "eleanor",
                                 "--ca", authorities_of(hosting.directory), given="wrong\n")  # fmt: skip
    assert mistyped.code == 2, mistyped
    assert "never" not in (await client.call("config", "get-contexts")).stdout


async def test_an_nkey_and_a_certificate_let_one_in_from_a_context_too(hosting: Landscape, tmp_path: Path):
    client, url = Client(tmp_path), hosting.describe()["nats_url"]
    authority = IdentityDirectory(hosting.directory / "identity").authority()
    own = authority.client(ELEANOR, datetime.now(UTC), timedelta(hours=1))
    (tmp_path / "own.pem").write_bytes(own.certificate + own.key)
    nkey = await hosting.command("identity", "issue", "--user", "frank", "--nkey", "-o", str(tmp_path / "frank.nk"))
    assert nkey.code == 0, nkey

    at = ("--nats-url", url, "--ca", authorities_of(hosting.directory))
    for_pem = ("config", "set-context", "pem", *at, "--credentials", "own.pem", "--current")
    assert (await client.call(*for_pem)).code == 0
    assert json.loads((await client.call("auth", "whoami", "-o", "json")).stdout)["user"] == "eleanor"
    for_nkey = ("config", "set-context", "nkey", *at, "--credentials", "frank.nk", "--current")
    assert (await client.call(*for_nkey)).code == 0
    nameless = await client.call("get", "seeds")
    assert (nameless.code, "which names no user" in nameless.stderr) == (2, True), nameless
    assert (await client.call("config", "set-context", "nkey", "--user", "frank")).code == 0
    assert json.loads((await client.call("auth", "whoami", "-o", "json")).stdout)["user"] == "frank"


async def test_no_expired_foreign_or_stolen_credential_ends_any_command_with_2_and_says_which(
    hosting: Landscape, tmp_path: Path
):
    client, url, now = Client(tmp_path), hosting.describe()["nats_url"], datetime.now(UTC)
    authority = IdentityDirectory(hosting.directory / "identity").authority()
    expired = authority.client(ELEANOR, now - timedelta(days=2), timedelta(days=1))
    foreign = Authority(new_authority("gardenbus", now)).client(ELEANOR, now)
    robbed, thief = (authority.client(ELEANOR, now) for _ in range(2))
    stated = json.dumps({"user": "eleanor", "password": "p", "expires": (now - timedelta(hours=1)).isoformat()})
    bad = {
        "expired.pem": (expired.certificate + expired.key, "expired at"),
        "foreign.pem": (foreign.certificate + foreign.key, "of another authority than those in"),
        "stolen.pem": (robbed.certificate + thief.key, "is not that of the certificate"),
        "expired.json": (stated.encode(), "expired at"),
        "unknown.json": (b'{"user": "eleanor", "password": "p"}', "of another landscape"),
        "broken.json": (b'{"user": "eleanor"}', "password"),
    }
    trusted = {"GARDENBUS_NATS_CA": authorities_of(hosting.directory)}
    for name, (content, reason) in bad.items():
        (tmp_path / name).write_bytes(content)
        given = {**trusted, "GARDENBUS_NATS_URL": url, "GARDENBUS_NATS_CREDENTIALS": str(tmp_path / name)}
        for command in (("get", "seeds"), ("doctor",)):
            rejected = await client.call(*command, **given)
            assert (rejected.code, rejected.stdout) == (2, ""), (name, rejected)
            assert reason in rejected.stderr, (name, rejected)
            assert name in rejected.stderr, (name, rejected)

    nothing = await client.call("doctor", "--nats-url", url, **trusted)
    assert (nothing.code, "no credentials were sent" in nothing.stderr) == (2, True), nothing
    for another in ({}, {"GARDENBUS_NATS_CA": str(_another_authority(tmp_path))}):
        untrusted = await client.call("doctor", "--nats-url", url, **another)
        assert (untrusted.code, "its certificate is rejected" in untrusted.stderr) == (2, True), untrusted


def _another_authority(directory: Path) -> Path:
    file = directory / "another.crt"
    file.write_bytes(new_authority("gardenbus", datetime.now(UTC)).certificate)
    return file
