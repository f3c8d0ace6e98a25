"""Gardener's own extension `local` makes parts of a shoot of ours: its real program, on real API servers."""

import asyncio
import base64
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml

from gardenbus.common.api.conditions import condition_status, conditions_of
from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.domain.extension_objects.contract import ready_problem
from gardenbus.gardenlet.domain.extension_objects.kinds import WAITS
from gardenbus.gardenlet.resource_manager.manager import ManagerContext, run_resource_manager
from tests.support.builders import a_cloudprofile, a_seed, a_shoot
from tests.support.eventually import eventually
from tests.support.gardenlets import a_configuration, a_garden
from tests.support.kube_clusters import RealCluster, real_clusters
from tests.support.overlaid_seeds import MemoryGarden, OverlaidSeed, namespace_of_shoot, overlaid_seed, saved_state
from tests.support.servers import Server, free_port

EXTENSIONS = "GARDENBUS_EXTENSIONS_BIN"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
IP_POOLS: Document = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ippools.crd.projectcalico.org"},
    "spec": {
        "group": "crd.projectcalico.org",
        "scope": "Cluster",
        "names": {"kind": "IPPool", "listKind": "IPPoolList", "plural": "ippools", "singular": "ippool"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""What the extension writes besides Gardener's own kinds."""

CLOUD_PROFILE = a_cloudprofile(
    "local",
    spec={
        "type": "local",
        "kubernetes": {"versions": [{"version": "1.34.4"}]},
        "machineImages": [{"name": "local", "versions": [{"version": "1.0.0", "architectures": ["amd64"]}]}],
        "machineTypes": [{"name": "local", "cpu": "2", "gpu": "0", "memory": "4Gi", "architecture": "amd64"}],
        "regions": [{"name": "local"}],
        "providerConfig": {
            "apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1",
            "kind": "CloudProfileConfig",
            "machineImages": [{"name": "local", "versions": [{"version": "1.0.0", "image": "node:1.0.0"}]}],
            "loadBalancer": {"image": "loadbalancer:1.0.0"},
        },
    },
)


def the_shoot(**spec: object) -> Document:
    pool = {
        "name": "pool",
        "machine": {"type": "local", "architecture": "amd64", "image": {"name": "local", "version": "1.0.0"}},
        "cri": {"name": "containerd"},
        "minimum": 1,
        "maximum": 1,
    }
    networking = {"nodes": "10.10.0.0/16", "pods": "10.3.0.0/16", "services": "10.4.0.0/16", "ipFamilies": ["IPv4"]}
    return a_shoot(
        "apollo",
        spec={
            "cloudProfile": {"kind": "CloudProfile", "name": "local"},
            "region": "local",
            "kubernetes": {"version": "1.34.4"},
            "networking": {"type": "calico", **networking},
            "provider": {"type": "local", "workers": [pool]},
            "secretBindingName": "keys",
            **spec,
        },
    )


def the_garden(seed: str, cluster: RealCluster) -> MemoryGarden:
    """A garden whose shoots have the seed's API for a cloud."""
    namespace = {"namespace": "garden-dev"}
    return MemoryGarden(
        a_seed(seed, spec={"provider": {"type": "local", "region": "local"}}),
        CLOUD_PROFILE,
        {
            "kind": "SecretBinding",
            "metadata": {"name": "keys", **namespace},
            "secretRef": {"name": "cloud", **namespace},
        },
        {
            "kind": "Secret",
            "metadata": {"name": "cloud", **namespace},
            "data": {"kubeconfig": base64.b64encode(cluster.kubeconfig.encode()).decode()},
        },
    )


@asynccontextmanager
async def provider_local(
    directory: Path, cluster: RealCluster, controllers: Sequence[str], **more: object
) -> AsyncGenerator[None]:
    """The program, on an API that has all definitions."""
    programs = os.environ.get(EXTENSIONS, "")
    if not programs:
        pytest.skip(f"{EXTENSIONS} names no directory with gardener-extension-provider-local")
    files = [each for file in Path(programs, "crds").glob("*.yaml") for each in yaml.safe_load_all(file.read_text())]
    for each in (*(each for each in files if each), IP_POOLS):
        await cluster.client.apply(f"{_DEFINITIONS}/{each['metadata']['name']}", each, manager="tester")

    async def are_established() -> None:
        for each in await cluster.client.items(_DEFINITIONS):
            assert condition_status(conditions_of(each), "Established") == "True"

    await eventually(are_established)
    for name in ("garden", "extension-provider-local"):
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await cluster.client.apply(f"/api/v1/namespaces/{name}", manifest, manager="tester")
    directory.mkdir(parents=True, exist_ok=True)
    kubeconfig = directory / "extension.kubeconfig"
    kubeconfig.write_text(cluster.kubeconfig)
    arguments = {
        "kubeconfig": kubeconfig,
        "leader-election": "false",
        "metrics-bind-address": "0",
        "health-bind-address": f"127.0.0.1:{free_port()}",
        "webhook-config-mode": "url",
        "webhook-config-url": f"127.0.0.1:{(webhooks := free_port())}",
        "webhook-config-server-host": "127.0.0.1",
        "webhook-config-server-port": webhooks,
        "webhook-config-cert-dir": directory / "tls",
        "disable-webhooks": "*",
        "extension-classes": "shoot",
        "gardener-version": "v1.149.3",
        "controllers": ",".join(controllers),
        **more,
    }
    with (directory / "extension.log").open("wb") as log:
        program = subprocess.Popen(
            [
                str(Path(programs, "gardener-extension-provider-local")),
                *(f"--{name}={value}" for name, value in arguments.items()),
            ],
            env={**os.environ, "LEADER_ELECTION_NAMESPACE": "extension-provider-local", "KUBECONFIG": str(kubeconfig)},
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        program.send_signal(signal.SIGKILL)
        program.wait()


@asynccontextmanager
async def resource_manager(seed: OverlaidSeed, directory: Path) -> AsyncGenerator[None]:
    """The gardenlet's resource manager: what extensions put into the shoot comes there."""
    context = ManagerContext("seed", directory / "seed.kubeconfig", seed.backend, SystemClock(), sync_seconds=5.0)
    task = asyncio.create_task(run_resource_manager(context))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _succeeds(seed: OverlaidSeed, shoot: Document, operation: str, **more: Document) -> None:
    result = await seed.run(shoot, operation, **more)  # type: ignore[arg-type]
    assert [failure.message for failure in result.failures] == []
    assert result.is_complete


@pytest.mark.timeout(900)
async def test_the_extension_makes_parts_of_a_shoot_with_a_real_control_plane(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot(extensions=[{"type": "local-ext-shoot"}])
    kinds = ("Infrastructure", "ControlPlane", "OperatingSystemConfig", "Extension")
    controllers = (
        "infrastructure",
        "controlplane",
        "operatingsystemconfig",
        "local-ext-shoot",
        "healthcheck",
        "heartbeat",
    )
    settings = ShootBackendSettings(type="processes", binaries=binaries, keep_running=False)
    directory, garden_of = tmp_path / "one", partial(the_garden, "one")
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        provider_local(tmp_path / "extension", cluster, controllers),
        overlaid_seed(directory, cluster, garden_of(cluster), kinds=kinds, waits=WAITS, settings=settings) as seed,
        resource_manager(seed, directory),
    ):
        await _succeeds(seed, shoot, "Create")
        made = await seed.all_objects(shoot)
        assert {kind for kind, _ in made} == set(kinds)
        assert ("Extension", "local-ext-shoot") in made
        await _succeeds(seed, shoot, "Reconcile")
        for kind in kinds:
            for each in (await seed.objects(shoot, kind)).values():
                assert ready_problem(each) is None
        shoot["spec"]["hibernation"] = {"enabled": True}
        await _succeeds(seed, shoot, "Reconcile")
        spec = section(
            await cluster.get(f"/apis/extensions.gardener.cloud/v1alpha1/clusters/{namespace_of_shoot(shoot)}"), "spec"
        )
        assert section(spec, "shoot", "spec", "hibernation")["enabled"] is True
        shoot["spec"]["hibernation"] = {"enabled": False}
        await _succeeds(seed, shoot, "Reconcile")
        await _succeeds(seed, shoot, "Delete")
        assert await seed.all_objects(shoot) == []


@pytest.mark.timeout(900)
async def test_the_extension_migrates_an_infrastructure_and_restores_it_on_another_seed(
    tmp_path: Path, binaries: str
) -> None:
    shoot = the_shoot()
    kinds, controllers = ("Infrastructure", "OperatingSystemConfig"), ("infrastructure", "operatingsystemconfig")
    seeds: list[OverlaidSeed] = []
    async with AsyncExitStack() as stack:
        clusters = await stack.enter_async_context(real_clusters(tmp_path, binaries, ["from", "to"]))
        for name, cluster in zip(("one", "two"), clusters, strict=True):
            garden = the_garden(name, cluster)
            await stack.enter_async_context(provider_local(tmp_path / f"extension-{name}", cluster, controllers))
            seeds.append(
                await stack.enter_async_context(
                    overlaid_seed(tmp_path / name, cluster, garden, kinds=kinds, waits=WAITS)
                )
            )
        source, destination = seeds
        await _succeeds(source, shoot, "Create")
        await _succeeds(source, shoot, "Migrate")
        assert await source.all_objects(shoot) == []
        infrastructure = f"/api/v1/namespaces/infra-{namespace_of_shoot(shoot)}"
        assert await source.client.get(infrastructure) is not None, "nothing is destroyed"
        await _succeeds(destination, shoot, "Restore", restored_from=saved_state(source, shoot))
        assert {kind for kind, _ in await destination.all_objects(shoot)} == set(kinds)
        await _succeeds(destination, shoot, "Delete")
        assert await destination.all_objects(shoot) == []


@pytest.mark.timeout(900)
async def test_snapshots_of_a_real_etcd_are_in_the_bucket_that_the_extension_made_until_their_entry_is_deleted(
    tmp_path: Path, binaries: str, shared_nats_server: Server
) -> None:
    place = tmp_path / "buckets"
    place.mkdir()
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        provider_local(
            tmp_path / "extension",
            cluster,
            ("backupbucket", "backupentry"),
            **{"backupbucket-local-dir": place},
        ),
        a_garden(shared_nats_server.url, "local-backups", tmp_path / "gardenlet") as garden,
    ):
        directory = garden.directory / "aws-eu1"
        directory.mkdir(parents=True)
        (directory / "seed.kubeconfig").write_text(cluster.kubeconfig)
        await garden.store.create(a_cloudprofile())
        extensions = {
            "kubeconfig": "seed.kubeconfig",
            "resourceManager": "external",
            "kinds": ["BackupBucket", "BackupEntry"],
        }
        backend = {"type": "processes", "binaries": binaries, "backups": str(place), "keepRunning": False}
        secret = {"apiVersion": "v1", "kind": "Secret", "name": "backup", "namespace": "garden"}
        configuration = a_configuration(
            seedConfig={"spec": {"backup": {"provider": "local", "region": "local", "credentialsRef": secret}}},
            controllers={"backupEntry": {"deletionGracePeriodHours": 1}},
            backend={**backend, "extensions": extensions},
        )
        await garden.start(configuration)
        shoot = a_shoot(spec={"kubernetes": {"version": "1.34.4"}, "provider": {"workers": []}})
        placed = await garden.place(shoot=shoot)
        await garden.until_state("Succeeded")
        uid = section(await garden.seed(), "metadata")["uid"]
        key = ObjectKey("backupentry", "garden-dev", f"shoot--dev--apollo--{placed.uid}")
        for each in (key, ObjectKey("backupbucket", "", uid)):
            assert section(await garden.get(each), "status", "lastOperation")["state"] == "Succeeded"
        generated = section(await garden.get(ObjectKey("backupbucket", "", uid)), "status")["generatedSecretRef"]
        assert generated == {"name": f"generated-bucket-{uid}", "namespace": "garden"}

        def snapshots() -> list[str]:
            return [each.name for each in (place / uid / key.name).glob("*-full-*.db.gz")]

        async def are_backed_up() -> None:
            assert snapshots()

        await eventually(are_backed_up)
        await garden.delete(ObjectKey("shoot", "garden-dev", "apollo"))
        await garden.until_gone(ObjectKey("shoot", "garden-dev", "apollo"))

        async def is_put_off() -> None:
            assert section(await garden.get(key), "status", "lastOperation")["state"] == "Pending"

        await eventually(is_put_off)
        assert snapshots(), "they live on"
        forced = {"annotations": {"backupentry.core.gardener.cloud/force-deletion": "true"}}
        await garden.change(key, metadata=forced)
        await garden.until_gone(key)
        assert not (place / uid / key.name).exists()
        await garden.delete(ObjectKey("seed", "", "aws-eu1"))
        await garden.until_gone(ObjectKey("seed", "", "aws-eu1"))
        assert not (place / uid).exists()
