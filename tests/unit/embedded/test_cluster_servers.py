"""Servers of `up --cluster`: how many of each, and their share of the machine's cores."""

from pathlib import Path

import pytest

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.embedded.clusters import NUMBERS, cluster_plan, cluster_servers, share_of_cores
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.redis_users import redis_users


@pytest.mark.parametrize(("cores", "share"), [(1, 1), (2, 1), (3, 1), (8, 2), (12, 4)])
def test_three_servers_of_nats_share_the_cores_and_each_has_one(cores: int, share: int) -> None:
    assert share_of_cores(cores) == share


@pytest.mark.parametrize("redis_numbers", [NUMBERS, (1, 2)])
def test_sentinels_know_each_redis_that_is_started(tmp_path: Path, redis_numbers: tuple[int, ...]) -> None:
    directory = LandscapeDirectory(tmp_path)
    directory.prepare()
    plan = cluster_plan(directory, Durability.PROCESS, {}, set(), redis_numbers=redis_numbers)
    servers = cluster_servers(
        plan, nats=Path("nats"), redis=Path("redis"), authorization="", users=redis_users(directory, "garden")
    )
    names = [spec.name for spec in servers.specs]
    assert [name for name in names if name.startswith("redis")] == [f"redis-{number}" for number in redis_numbers]
    assert [name for name in names if name.startswith("nats")] == ["nats-1", "nats-2", "nats-3"]
    replicas = [plan.ports[f"redis-{number}"] for number in redis_numbers if number != plan.primary]
    for number in NUMBERS:
        sentinel = (directory.config / f"sentinel-{number}.conf").read_text()
        assert [int(line.split()[-1]) for line in sentinel.splitlines() if "known-replica" in line] == replicas
