"""What is shown of addresses that say who one is."""

import pytest

from gardenbus.common.adapters.addresses import check_nats_url, without_password, without_user
from gardenbus.common.errors import BadRequest


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("nats://ann:s3cret@a:1,nats://bob:s3cret@b:2", "nats://a:1,nats://b:2"),
        ("nats://a:1,tls://s3cret@b:2", "nats://a:1,tls://b:2"),
        ("ann:s3cret@a:1,b:2", "a:1,b:2"),
        ("nats://ann:s3@cret://x@a:1", "nats://a:1"),
        ("ann:s3cret://x@a:1", "a:1"),
        ("nats://a:1", "nats://a:1"),
    ],
)
def test_no_password_of_several_nats_servers_is_shown(given: str, shown: str):
    assert without_user(given) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("redis://ann:s3,cr@t://x@a:1/0", "redis://a:1/0"),
        ("unix://ann:s3cret@/run/redis.sock?db=1&password=s3cret", "unix:///run/redis.sock"),
        ("rediss://a:1/0", "rediss://a:1/0"),
    ],
)
def test_no_password_of_a_redis_is_shown(given: str, shown: str):
    assert without_password(given) == shown


@pytest.mark.parametrize(
    "given",
    [
        "nonsense with space",
        "nats://a b:4222",
        "nats://a:1,b c",
        "nats://",
        "nats://a<b",
        "\t",
        "nats//x:::",
        "nats:/a",
    ],
)
def test_what_cannot_be_a_host_is_no_address(given: str):
    with pytest.raises(BadRequest, match="is no NATS address: write nats://host:port"):
        check_nats_url(given)


@pytest.mark.parametrize(
    "given", ["a", "my_nats:4222", "nats://ann:s3 cret@bücher.example:1", "tls://[fe80::1%eth0]:4222"]
)
def test_what_can_be_a_host_is_an_address(given: str):
    check_nats_url(given)
