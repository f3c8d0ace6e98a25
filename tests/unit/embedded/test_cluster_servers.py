"""Servers of `up --cluster` share the machine's cores."""

import pytest

from gardenbus.embedded.clusters import share_of_cores


@pytest.mark.parametrize(("cores", "share"), [(1, 1), (2, 1), (3, 1), (8, 2), (12, 4)])
def test_three_servers_of_nats_share_the_cores_and_each_has_one(cores: int, share: int) -> None:
    assert share_of_cores(cores) == share
