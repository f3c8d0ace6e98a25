"""A server that leads a stream no longer may answer for it with what it had."""

from typing import Any

import pytest

from gardenbus.common.adapters.nats.api import may_be_deposed

SECOND = 1_000_000_000


def responded(*silent_for: float) -> dict[str, Any]:
    replicas = [{"name": f"nats-{number}", "active": int(each * SECOND)} for number, each in enumerate(silent_for)]
    return {"cluster": {"leader": "nats-9", "replicas": replicas}}


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"state": {}}, False),
        ({"cluster": {"leader": "nats-0"}}, False),
        (responded(0.2, 0.9), False),
        (responded(0.2, 60), False),
        (responded(20, 20), True),
        (responded(0.1, 0.1, 9, 9), False),
        (responded(0.1, 9, 9, 9), True),
        ({"cluster": {"name": "garden", "replicas": responded(0, 0.3, 0)["cluster"]["replicas"]}}, True),
    ],
)
def test_a_leader_counts_while_it_hears_from_most_servers_and_nobody_else(
    response: dict[str, Any], expected: bool
) -> None:
    assert may_be_deposed(response) is expected
