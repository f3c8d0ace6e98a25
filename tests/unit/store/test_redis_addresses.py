"""GARDENBUS_REDIS_URL: one server, a list of servers, or Sentinels and the name of their master."""

import pytest

from gardenbus.common.adapters.redis.addresses import RedisAddresses, ServerAddress, parse_redis_url
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.openings import opening_number
from gardenbus.common.errors import BadRequest, SettingsInvalid


@pytest.mark.parametrize(
    "url", ["redis://h:1/0", "unix:///run/redis.sock", "rediss://user:p%40ss@h/2", "redis://[::1]:7/0"]
)
def test_one_server_is_left_to_the_client(url: str) -> None:
    assert parse_redis_url(url) == RedisAddresses(url)
    assert not parse_redis_url(url).are_several


def test_sentinels_have_the_name_of_their_master() -> None:
    found = parse_redis_url("redis+sentinel://relay:secret@a,b:7,[fd00::1]:8/garden/3")
    assert found.sentinels == (ServerAddress("a", 26379), ServerAddress("b", 7), ServerAddress("fd00::1", 8))
    assert (found.service, found.servers) == ("garden", ())
    assert found.url == "redis://relay:secret@a:26379/3"


def test_sentinels_may_want_a_login_of_their_own_and_tls() -> None:
    found = parse_redis_url(
        "rediss+sentinel://relay@a:1/garden?sentinel_username=me&sentinel_password=x%26y&ssl_cert_reqs=none"
    )
    assert (found.sentinel_username, found.sentinel_password) == ("me", "x&y")
    assert found.url == "rediss://relay@a:1/0?ssl_cert_reqs=none"


def test_sentinels_may_know_the_servers_users() -> None:
    found = parse_redis_url("redis+sentinel://relay@a:1/garden?sentinel_login=same")
    assert (found.has_same_login, found.url) == (True, "redis://relay@a:1/0")


def test_a_list_names_servers() -> None:
    found = parse_redis_url("redis://user@a,b:7/1")
    assert found == RedisAddresses("redis://user@a:6379/1", (ServerAddress("a", 6379), ServerAddress("b", 7)))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("redis+sentinel://a,b,c", "lacks the name of their master"),
        ("redis+sentinel://a,b:0/garden", "'b:0' is no address"),
        ("redis://user:secret@a,,c/0", "'' is no address"),
        ("redis://a,b:99999/0", "'b:99999' is no address"),
        ("redis+sentinel://a/garden?sentinel_login=mine", "sentinel_login is 'same'"),
        ("redis://a,b/garden", "'garden' is no number of a database"),
    ],
)
def test_what_is_no_address_is_named_without_its_password(url: str, reason: str) -> None:
    with pytest.raises(BadRequest) as raised:
        parse_redis_url(url)
    assert reason in raised.value.message
    assert "secret" not in raised.value.message
    with pytest.raises(SettingsInvalid, match="GARDENBUS_REDIS_URL"):
        RedisConnection(url)


@pytest.mark.parametrize(
    ("opening", "number"), [(None, -1), (b"1.5f3e", 0), (b"1.2000001.5f3e", 2000001), (b"2.x.5f3e", 0)]
)
def test_openings_are_ordered_by_their_number(opening: bytes | None, number: int) -> None:
    assert opening_number(opening) == number
