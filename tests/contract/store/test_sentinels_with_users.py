"""Sentinels that let nobody in without a login: the servers' users, or one of their own, on real servers."""

from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.commands.doctor import examined
from gardenbus.common.adapters.redis.access import RedisAccess
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.users import RedisUser, acl_file, sentinel_login, sentinel_users
from gardenbus.common.errors import SettingsInvalid, Unavailable
from tests.support.servers import Server, start_redis, start_sentinel

PASSWORDS: dict[RedisUser, str] = {
    user: f"{user}'s, & its own" for user in ("relay", "scheduler", "operator", "replica", "sentinel")
}
OWN = "user watcher on >w&tch -@all +@connection +sentinel|master +sentinel|replicas\n"
WATCHER = "sentinel_username=watcher"


class Guarded(NamedTuple):
    """Hosts of the Sentinels, and a directory for files."""

    hosts: str
    directory: Path

    def url(self, user: str, query: str) -> str:
        return f"redis+sentinel://{user}@{self.hosts}/garden?{query}"

    def file(self, content: str) -> str:
        file = self.directory / "password"
        file.write_text(f"{content}\n")
        return str(file)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Generator[Guarded]:
    directory = tmp_path_factory.mktemp("guarded")
    (directory / "users.acl").write_text(acl_file("garden", PASSWORDS))
    with ExitStack() as stack:
        primary = start_redis(directory / "redis", acl_file=directory / "users.acl")
        stack.callback(primary.kill)
        extra = sentinel_login("garden", PASSWORDS) + sentinel_users(PASSWORDS) + OWN
        sentinels: list[Server] = []
        for number in range(3):
            sentinels.append(start_sentinel(directory / f"sentinel-{number}", "garden", primary.port, extra=extra))
            stack.callback(sentinels[-1].kill)
        yield Guarded(",".join(f"127.0.0.1:{each.port}" for each in sentinels), directory)


@asynccontextmanager
async def connected(url: str, access: RedisAccess) -> AsyncGenerator[RedisConnection]:
    connection = RedisConnection(url, access=access)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.mark.parametrize("user", ["relay", "scheduler", "operator"])
@pytest.mark.parametrize("query", ["sentinel_login=same", f"{WATCHER}&sentinel_password=w%26tch"])
async def test_the_master_is_found_by_each_user_with_either_login(
    guarded: Guarded, user: RedisUser, query: str
) -> None:
    access = RedisAccess(password_file=guarded.file(PASSWORDS[user]))
    async with connected(guarded.url(user, query), access) as connection:
        assert await connection.command("PING") == b"PONG"
        assert list((await connection.sentinels()).values()) == [True, True, True]


async def test_the_sentinels_password_may_be_in_a_file_of_its_own(guarded: Guarded) -> None:
    file = guarded.directory / "sentinels"
    file.write_text("w&tch\n")
    access = RedisAccess(guarded.file(PASSWORDS["relay"]), sentinel_password_file=str(file))
    async with connected(guarded.url("relay", WATCHER), access) as connection:
        assert await connection.command("PING") == b"PONG"
        assert list((await connection.sentinels()).values()) == [True, True, True]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "Authentication required"),
        (f"{WATCHER}&sentinel_password=wrong", "invalid username-password pair"),
        ("sentinel_username=stranger&sentinel_password=x", "invalid username-password pair"),
    ],
)
async def test_sentinels_that_refuse_the_login_are_not_taken_for_ones_that_know_no_master(
    guarded: Guarded, query: str, reason: str
) -> None:
    access = RedisAccess(password_file=guarded.file(PASSWORDS["relay"]))
    async with connected(guarded.url("relay", query), access) as connection:
        with pytest.raises(Unavailable, match="Sentinel") as raised:
            await connection.command("PING")
    assert reason in raised.value.message
    assert "sentinel_login=same" in raised.value.message


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("sentinel_password=x", "GARDENBUS_REDIS_URL has a password of the Sentinels too"),
        ("sentinel_login=same", "GARDENBUS_REDIS_URL has sentinel_login=same"),
    ],
)
def test_two_logins_at_the_sentinels_are_refused(guarded: Guarded, query: str, problem: str) -> None:
    with pytest.raises(SettingsInvalid, match="GARDENBUS_REDIS_SENTINEL_PASSWORD_FILE") as raised:
        RedisConnection(guarded.url("relay", query), access=RedisAccess(sentinel_password_file=__file__))
    assert problem in str(raised.value)


async def test_doctor_comes_in_by_the_files_that_the_environment_names(
    guarded: Guarded, nats_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = guarded.directory / "sentinels"
    file.write_text("w&tch\n")
    monkeypatch.setenv("GARDENBUS_REDIS_PASSWORD_FILE", guarded.file(PASSWORDS["operator"]))
    monkeypatch.setenv("GARDENBUS_REDIS_SENTINEL_PASSWORD_FILE", str(file))
    where = LandscapeTarget(nats_server.url, "garden")
    found = {each.check: each for each in await examined(where, guarded.url("operator", WATCHER))}
    assert found["redis version"].state == "ok"
    assert "redis sentinels" not in found
