"""A landscape of `up --cluster` is backed up into the object store of another NATS cluster, and restored from there."""

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.test_cluster import a_landscape_file
from tests.e2e.test_up import gardenbus
from tests.support.nats_cluster import start_nats_cluster

pytestmark = pytest.mark.long


async def test_it_is_restored_though_a_server_with_the_backups_is_gone(tmp_path: Path) -> None:
    place, file = tmp_path / "lab", a_landscape_file(tmp_path)
    up = ("up", "--cluster", "--dir", str(place), "-f", str(file), "--detach")
    with ExitStack() as stack:
        cluster = await asyncio.to_thread(start_nats_cluster, stack, tmp_path / "backups")
        where = ("-d", f"nats://{cluster.url.replace('nats://', '')}/backups")
        try:
            assert (await gardenbus(*up)).code == 0
            shoot = ("shoot", "apollo", "-n", "garden-dev", "--dir", str(place))
            assert (await gardenbus("wait", *shoot, "--for", "reconciled")).code == 0
            for step in (("create",), ("create", "--delta")):
                created = await gardenbus("backup", *step, *where, "--dir", str(place))
                assert created.code == 0, created.stderr
            cluster.leader_of("OBJ_backups").kill()
            listed = await gardenbus("backup", "ls", *where, "-o", "name")
            assert listed.code == 0, listed.stderr
            assert listed.stdout
            verified = await gardenbus("backup", "verify", *where)
            assert verified.code == 0, verified.stderr + verified.stdout
            assert (await gardenbus("down", "--dir", str(place), "--purge")).code == 0
            restored = await gardenbus(*up[:-3], "--restore", where[1], "--detach", "-f", str(file))
            assert restored.code == 0, restored.stderr
            assert "restored" in restored.stdout + restored.stderr
            assert (await gardenbus("wait", *shoot, "--for", "reconciled")).code == 0
        finally:
            await gardenbus("down", "--dir", str(place))
