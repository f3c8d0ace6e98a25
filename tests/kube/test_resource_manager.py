"""One suite of ManagedResources on a real API server: for the gardenlet's resource manager, and for Gardener's."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import yaml

from gardenbus.common.api.conditions import condition_status, conditions_of
from gardenbus.common.api.document import section
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.domain.managed_resources.definition import DEFINITION
from gardenbus.gardenlet.domain.shoot_status import technical_id
from gardenbus.gardenlet.resource_manager.manager import ManagerContext, run_resource_manager
from tests.support.eventually import eventually
from tests.support.kube_clusters import RealCluster, real_clusters
from tests.support.managed_scenes import ALL_HEALTHY, MANAGED_BY, SCENES, ManagedScenes, a_config_map
from tests.support.servers import free_port

EXTENSIONS = "GARDENBUS_EXTENSIONS_BIN"
SYNC_SECONDS = 5.0
MANAGED_BY_SELECTOR = ",".join(f"{name}={value}" for name, value in MANAGED_BY.items())
Manager = Callable[[RealCluster, Path], AbstractAsyncContextManager[None]]
_DEFINITION = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{DEFINITION['metadata']['name']}"


@asynccontextmanager
async def own_manager(cluster: RealCluster, directory: Path) -> AsyncGenerator[None]:
    """The gardenlet's: the cluster is the seed, and the shoot of the namespace at the same time."""
    kubeconfig = directory / "seed.kubeconfig"
    kubeconfig.write_text(cluster.kubeconfig)
    context = ManagerContext("seed", kubeconfig, cluster.backend, SystemClock(), sync_seconds=SYNC_SECONDS)
    running = asyncio.create_task(run_resource_manager(context))
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def gardeners_manager(cluster: RealCluster, directory: Path) -> AsyncGenerator[None]:
    """Gardener's program, twice as in a landscape of Gardener: for class `seed`, and for that of shoots."""
    programs = os.environ.get(EXTENSIONS, "")
    if not programs:
        pytest.skip(f"{EXTENSIONS} names no directory with gardener-resource-manager")
    (definition,) = [
        each
        for file in Path(programs, "crds").glob("*.yaml")
        for each in yaml.safe_load_all(file.read_text())
        if each and each["metadata"]["name"] == DEFINITION["metadata"]["name"]
    ]
    await cluster.client.apply(_DEFINITION, definition, manager="tester")
    kubeconfig = directory / "seed.kubeconfig"
    kubeconfig.write_text(cluster.kubeconfig)
    (keys,) = directory.glob("**/control-planes/*/pki")  # its webhooks, which nothing calls, want a certificate
    for file in ("crt", "key"):
        shutil.copy(keys / f"kube-apiserver.{file}", directory / f"tls.{file}")
    running = [_start(programs, directory, kubeconfig, each) for each in ("seed", "resources")]
    try:
        yield
    finally:
        for each in running:
            each.send_signal(signal.SIGKILL)
            each.wait()


def _start(programs: str, directory: Path, kubeconfig: Path, resource_class: str) -> "subprocess.Popen[bytes]":
    address = {"bindAddress": "127.0.0.1"}
    configuration = {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "leaderElection": {"leaderElect": False},
        "logLevel": "info",
        "logFormat": "json",
        "server": {
            "healthProbes": {**address, "port": free_port()},
            "metrics": {**address, "port": free_port()},
            "webhooks": {**address, "port": free_port(), "tls": {"serverCertDir": str(directory)}},
        },
        "controllers": {
            "resourceClass": resource_class,
            "clusterID": "<default>",
            "health": {"syncPeriod": "15s"},
            "managedResource": {"syncPeriod": "15s"},
            "tokenRequestor": {"enabled": resource_class == "resources"},
        },
    }
    file = directory / f"grm-{resource_class}.yaml"
    file.write_text(yaml.safe_dump(configuration))
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "TARGET_KUBECONFIG": str(kubeconfig)}
    with (directory / f"grm-{resource_class}.log").open("wb") as log:
        return subprocess.Popen(
            [str(Path(programs, "gardener-resource-manager")), "--config", str(file)],
            env=environment,
            stdout=log,
            stderr=log,
        )


async def _until_defined(cluster: RealCluster) -> None:
    """Wait until the API serves ManagedResources."""

    async def is_defined() -> None:
        found = await cluster.client.get(_DEFINITION) or {}
        assert condition_status(conditions_of(found), "Established") == "True"

    await eventually(is_defined)


@pytest.mark.timeout(900)  # the program syncs each 15 s, and a busy machine is slow at starting it all
@pytest.mark.parametrize("manager", [own_manager, gardeners_manager])
async def test_managed_resources_are_applied_checked_and_removed(
    tmp_path: Path, binaries: str, manager: Manager
) -> None:
    async with real_clusters(tmp_path, binaries, ["seed"]) as (cluster,):
        scenes = ManagedScenes(cluster.client, technical_id(cluster.record.namespace, cluster.record.name))
        await scenes.prepare()
        async with manager(cluster, tmp_path):
            await _until_defined(cluster)
            for scene in SCENES:
                await scene(scenes)


@pytest.mark.timeout(600)
async def test_a_thousand_objects_are_applied_though_the_resource_manager_ends_in_between(
    tmp_path: Path, binaries: str
) -> None:
    async with real_clusters(tmp_path, binaries, ["seed"]) as (cluster,):
        scenes = ManagedScenes(cluster.client, technical_id(cluster.record.namespace, cluster.record.name))
        await scenes.prepare()
        names = [f"one-{number:04}" for number in range(1000)]
        config_maps = "/api/v1/namespaces/target/configmaps"

        async def made(least: int) -> None:
            assert len(await cluster.client.items(config_maps, labelSelector=MANAGED_BY_SELECTOR)) >= least

        async with own_manager(cluster, tmp_path):
            await _until_defined(cluster)
            await scenes.bundle("many", *(a_config_map(name) for name in names))
            await eventually(lambda: made(100))
        status = section(await scenes.get("managedresources", "many"), "status")
        assert "observedGeneration" not in status
        async with own_manager(cluster, tmp_path):
            await scenes.until_applied("many")
            await scenes.until("many", ALL_HEALTHY, "ResourcesHealthy")
            assert await scenes.listed("many") == [f"ConfigMap/{name}" for name in names]
            await scenes.delete("managedresources", "many")
            await scenes.until_gone("managedresources", "many")
        assert await cluster.client.items(config_maps, labelSelector=MANAGED_BY_SELECTOR) == []
