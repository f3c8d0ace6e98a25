"""Roles of a cluster's servers, as `gardenbus status` shows them."""

from typing import Any

from gardenbus.embedded.server_roles import nats_role, redis_role


def test_a_primary_shows_its_replicas_and_what_they_lack() -> None:
    role: list[Any] = [b"master", 1500, [[b"h", b"7", b"500"], [b"h", b"8", b"1500"]]]
    assert redis_role(role) == "primary of 2 replicas, at most 1,000 bytes behind"
    assert redis_role([b"master", 9, []]) == "primary of 0 replicas"


def test_a_replica_shows_whom_it_follows() -> None:
    assert redis_role([b"slave", b"h", 7, b"connected", 9]) == "replica of h:7, connected"


def test_what_is_no_role_is_not_shown() -> None:
    assert redis_role(None) == ""
    assert redis_role(RuntimeError("NOPERM")) == ""


def test_a_server_shows_which_streams_it_leads() -> None:
    led = {"leader": "me", "replicas": [{"current": True}, {"current": False}]}
    streams = [{"cluster": led}, {"cluster": {"leader": "another", "replicas": [{"current": False}]}}, {}]
    assert nats_role("me", {"account_details": [{"stream_detail": streams}]}) == "leads 1 of 3 streams, 1 copies behind"
    assert nats_role("me", {}) == "leads 0 of 0 streams"
