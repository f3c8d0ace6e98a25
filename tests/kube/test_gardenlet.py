"""Gardener's own gardenlet in a landscape: its seed is a real API server, its rights are those of its seed alone."""

import asyncio
import base64
import contextlib
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.document import section
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import USER
from gardenbus.credentials.identity_directory import IdentityDirectory
from gardenbus.gardenlet.domain.control_plane import DEFAULT_PODS, DEFAULT_SERVICES
from gardenbus.gardenlet.domain.managed_resources.definition import DEFINITION
from tests.support.eventually import eventually
from tests.support.kube_clusters import RealCluster, real_clusters
from tests.support.kubernetes_api import Document, KubernetesApi, client_program
from tests.support.servers import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SEED, DOMAIN = "real", "real.example.org"
NEW_SEED = "new"
BOOTSTRAP = {"name": "gardenlet-kubeconfig-bootstrap", "namespace": "garden"}
OBTAINED = {"name": "gardenlet-kubeconfig", "namespace": "garden"}
SECRETS = "/api/v1/namespaces/garden/secrets"
WITHIN = 180.0
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LEAST_DEFINITIONS = 60
GARDENER_VERSION = "v1.149.3"


SHOOT: Document = {
    "seedSelector": {"matchLabels": {"seed": SEED}},
    "networking": {"services": "172.30.0.0/16"},
    "provider": {"type": "aws"},
    "purpose": "evaluation",
    "kubernetes": {
        "version": "1.34.4",
        "kubeAPIServer": {
            "requests": {"maxNonMutatingInflight": 400, "maxMutatingInflight": 200},
            "eventTTL": "1h0m0s",
            "logging": {"verbosity": 2},
            "encryptionConfig": {"resources": [], "provider": {"type": "aescbc"}},
        },
    },
    "maintenance": {
        "timeWindow": {"begin": "220000+0000", "end": "230000+0000"},
        "autoUpdate": {"kubernetesVersion": True},
    },
}
"""A Shoot without workers, with what Gardener's API server would default and its gardenlet takes for granted."""


class RealSeed(NamedTuple):
    """A landscape, and the cluster that is to be its seed."""

    landscape: KubernetesApi
    cluster: RealCluster
    configuration: Path
    environ: dict[str, str]

    @asynccontextmanager
    async def gardenlet(self) -> AsyncGenerator[None]:
        """The gardenlet, which is killed at the end of the block."""
        with (self.landscape.place / "gardenlet.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                client_program("gardenlet"),
                f"--config={self.configuration}",
                env={**os.environ, **self.environ},
                stdout=log,
                stderr=asyncio.subprocess.STDOUT,
            )
        try:
            yield
            assert process.returncode is None, "the gardenlet has ended itself"
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def a_configuration(name: str = SEED) -> Document:
    """A GardenletConfiguration that starts without leader election and without logs of its own."""
    connection = {"qps": 100, "burst": 130}
    syncs: Document = {"concurrentSyncs": 5}
    controllers: Document = {
        **dict.fromkeys(("bastion", "backupBucket", "backupEntry", "controllerInstallation", "networkPolicy"), syncs),
        **dict.fromkeys(("controllerInstallationCare", "shootStatus", "managedSeed", "tokenRequestor"), syncs),
        **dict.fromkeys(("tokenRequestorWorkloadIdentity", "vpaEvictionRequirements"), syncs),
        "controllerInstallationRequired": {"concurrentSyncs": 1},
        "shoot": {**syncs, "syncPeriod": "1h", "retryDuration": "12h"},
        "shootCare": {**syncs, "syncPeriod": "30s", "staleExtensionHealthChecks": {"enabled": True}},
        "shootState": {**syncs, "syncPeriod": "6h"},
        "seed": {"syncPeriod": "1h"},
        "seedCare": {"syncPeriod": "30s"},
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "name": "internal-domain", "namespace": "garden"}
    seed = {
        "provider": {"type": "aws", "region": "eu-west-1", "zones": ["eu-west-1a"]},
        "networks": {"nodes": "10.77.0.0/17", "pods": DEFAULT_PODS, "services": DEFAULT_SERVICES},
        "ingress": {"domain": f"ingress.{DOMAIN}", "controller": {"kind": "nginx"}},
        "dns": {
            "provider": {"type": "aws-route53", "credentialsRef": secret},
            "internal": {"type": "aws-route53", "domain": f"internal.{DOMAIN}", "credentialsRef": secret},
        },
        "settings": {"excessCapacityReservation": {"enabled": False}, "scheduling": {"visible": True}},
    }
    server = {name: {"bindAddress": "127.0.0.1", "port": free_port()} for name in ("healthProbes", "metrics")}
    return {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        **{f"{each}ClientConnection": connection for each in ("garden", "seed", "shoot")},
        "controllers": controllers,
        "resources": {"capacity": {"shoots": 200}},
        "leaderElection": {"leaderElect": False},
        "logLevel": "info",
        "logFormat": "json",
        "logging": {"enabled": False},
        "server": server,
        "seedConfig": {"metadata": {"name": name, "labels": {"seed": name}}, "spec": seed},
    }


def in_garden(landscape: KubernetesApi, tmp_path: Path) -> None:
    """Apply the Secrets of the garden that a gardenlet needs."""
    for name, role in (("internal-domain", "internal-domain"), ("monitoring", "global-monitoring")):
        labels = {"gardener.cloud/role": role, "app": "gardener"}
        annotations = {"dns.gardener.cloud/provider": "aws-route53", "dns.gardener.cloud/domain": f"internal.{DOMAIN}"}
        metadata = {"name": name, "namespace": "garden", "labels": labels, "annotations": annotations}
        data = {each: base64.b64encode(b"someone").decode() for each in ("username", "password", "auth")}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(secret))
        landscape.gardenbus("apply", "-f", str(file))


@pytest.fixture
async def seed(kubernetes_api: KubernetesApi, tmp_path: Path, binaries: str) -> AsyncGenerator[RealSeed]:
    """What Gardener's gardenlet needs: secrets of the landscape, and a configuration with both kubeconfigs."""
    landscape = kubernetes_api
    in_garden(landscape, tmp_path)
    authority = IdentityDirectory(landscape.place / "gb" / "identity").authority()
    issued = authority.client(Principal("gardenlet", SEED), datetime.now(UTC))
    garden: Document = yaml.safe_load(landscape.kubeconfig.read_text())
    garden["users"][0]["user"] = {
        "client-certificate-data": base64.b64encode(issued.certificate).decode(),
        "client-key-data": base64.b64encode(issued.key).decode(),
    }
    kubeconfig = tmp_path / "garden.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(garden))
    async with real_clusters(tmp_path, binaries, [SEED]) as (cluster,):
        await cluster.client.apply(f"{DEFINITIONS}/{DEFINITION['metadata']['name']}", DEFINITION, manager="tester")
        seed_kubeconfig = tmp_path / "seed.kubeconfig"
        seed_kubeconfig.write_text(cluster.kubeconfig)
        file = tmp_path / "gardenlet.yaml"
        file.write_text(yaml.safe_dump(a_configuration()))
        yield RealSeed(
            landscape, cluster, file, {"GARDEN_KUBECONFIG": str(kubeconfig), "KUBECONFIG": str(seed_kubeconfig)}
        )


def conditions(landscape: KubernetesApi, seed: str = SEED) -> dict[str, str]:
    """Statuses of the Seed's conditions."""
    return {each["type"]: each["status"] for each in conditions_of(landscape.object("seed", seed, ""))}


def operation(kind: str, name: str, landscape: KubernetesApi) -> Document:
    """The operation that an object's status states."""
    return section(landscape.object(kind, name), "status", "lastOperation")


def a_namespace(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def renewed_at(landscape: KubernetesApi, seed: str = SEED) -> str:
    lease = landscape.object("lease", seed, "gardener-system-seed-lease")
    return str(section(lease, "spec").get("renewTime"))


async def until_ready(landscape: KubernetesApi, seed: str = SEED) -> None:
    async def is_ready() -> None:
        assert landscape.has("seed", seed, "")
        assert conditions(landscape, seed).get("GardenletReady") == "True"

    await eventually(is_ready, within=WITHIN, every=1.0)


async def test_gardeners_gardenlet_runs_a_seed_and_begins_a_shoot_with_the_rights_of_that_seed(seed: RealSeed) -> None:
    landscape = seed.landscape
    async with seed.gardenlet():
        await until_ready(landscape)
        await is_registered(landscape)
        file = landscape.place / "realized.json"
        file.write_text(json.dumps(landscape.shoot("realized", **SHOOT)))
        landscape.gardenbus("apply", "-f", str(file))
        await eventually(lambda: has_begun(seed), within=WITHIN, every=1.0)
        await eventually(lambda: is_claimed(seed), within=WITHIN, every=1.0)
        assert "Reconciling" in landscape.gardenbus("events", "shoot", "realized", "-n", "garden-dev")

    async def is_unknown() -> None:
        assert conditions(landscape)["GardenletReady"] == "Unknown"

    await eventually(is_unknown, within=WITHIN, every=1.0)
    landscape.gardenbus("delete", "shoot", "realized", "-n", "garden-dev", "--confirm", "--wait=false")
    async with seed.gardenlet():
        await until_ready(landscape)

        async def is_deleting() -> None:
            assert operation("shoot", "realized", landscape)["type"] == "Delete"

        await eventually(is_deleting, within=WITHIN, every=1.0)


async def is_registered(landscape: KubernetesApi) -> None:
    """Assert what the Seed says of its gardenlet, and that the Lease goes on being renewed."""
    seed = landscape.object("seed", SEED, "")
    assert seed["metadata"]["annotations"]["gardener.cloud/created-by"] == f"seed:{SEED}"
    assert seed["status"]["capacity"] == {"shoots": "200"}
    assert seed["status"]["gardener"]["version"] == GARDENER_VERSION
    (row,) = [each for each in landscape.gardenbus("get", "seeds").splitlines() if each.startswith(f"{SEED} ")]
    assert "Ready" in row
    assert "0/200" in row
    last = renewed_at(landscape)

    async def is_renewed() -> None:
        assert renewed_at(landscape) > last

    await eventually(is_renewed, within=WITHIN, every=1.0)


async def has_begun(seed: RealSeed) -> None:
    """Assert that the reconciliation of the Seed has made what its extensions are defined by."""
    assert operation("seed", SEED, seed.landscape)["type"] == "Reconcile"
    assert "SeedSystemComponentsHealthy" in conditions(seed.landscape)
    assert len(await seed.cluster.client.items(DEFINITIONS)) >= LEAST_DEFINITIONS
    assert seed.landscape.has("secret", "monitoring", f"seed-{SEED}")


async def is_claimed(seed: RealSeed) -> None:
    """Assert that the Shoot is on the Seed, and its operation waits for extensions, of which there are none."""
    shoot = seed.landscape.object("shoot", "realized")
    status = section(shoot, "status")
    assert shoot["spec"]["seedName"] == status["seedName"] == SEED
    assert status["gardener"]["version"] == GARDENER_VERSION
    assert status["technicalID"] == "shoot--dev--realized"
    assert "gardener" in shoot["metadata"]["finalizers"]
    assert status["lastOperation"]["type"] == "Create"
    assert [each["taskID"] for each in status["lastErrors"]] == ["Check required extensions"]
    cluster = await seed.cluster.get("/apis/extensions.gardener.cloud/v1alpha1/clusters/shoot--dev--realized")
    assert section(cluster, "spec", "shoot")["metadata"]["name"] == "realized"


@pytest.fixture
async def new_seed(kubernetes_api: KubernetesApi, tmp_path: Path, binaries: str) -> AsyncGenerator[RealSeed]:
    """A gardenlet that has nothing of the landscape but a bootstrap token, in a Secret of its cluster."""
    landscape = kubernetes_api
    in_garden(landscape, tmp_path)
    token = landscape.gardenbus("token", "create", "--seed", NEW_SEED).split()[0]
    garden: Document = yaml.safe_load(landscape.kubeconfig.read_text())
    garden["users"][0]["user"] = {"token": token}
    async with real_clusters(tmp_path, binaries, [NEW_SEED]) as (cluster,):
        await cluster.client.apply(f"{DEFINITIONS}/{DEFINITION['metadata']['name']}", DEFINITION, manager="tester")
        await cluster.client.apply("/api/v1/namespaces/garden", a_namespace("garden"), manager="tester")
        data = {"kubeconfig": base64.b64encode(yaml.safe_dump(garden).encode()).decode()}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": BOOTSTRAP, "data": data}
        await cluster.client.apply(f"{SECRETS}/{BOOTSTRAP['name']}", secret, manager="tester")
        seed_kubeconfig = tmp_path / "seed.kubeconfig"
        seed_kubeconfig.write_text(cluster.kubeconfig)
        configuration = a_configuration(NEW_SEED)
        configuration["gardenClientConnection"] |= {
            "bootstrapKubeconfig": BOOTSTRAP,
            "kubeconfigSecret": OBTAINED,
            "kubeconfigValidity": {"validity": "24h"},
        }
        file = tmp_path / "gardenlet.yaml"
        file.write_text(yaml.safe_dump(configuration))
        yield RealSeed(landscape, cluster, file, {"KUBECONFIG": str(seed_kubeconfig)})


async def test_gardeners_gardenlet_bootstraps_by_a_token_and_registers_its_seed(new_seed: RealSeed) -> None:
    landscape = new_seed.landscape
    async with new_seed.gardenlet():
        await until_ready(landscape, NEW_SEED)
    obtained = await new_seed.cluster.get(f"{SECRETS}/{OBTAINED['name']}")
    kubeconfig = yaml.safe_load(base64.b64decode(obtained["data"]["kubeconfig"]))
    assert "client-certificate-data" in kubeconfig["users"][0]["user"]
    assert await new_seed.cluster.client.get(f"{SECRETS}/{BOOTSTRAP['name']}") is None, "it is of no use any more"
    (request,) = [
        each
        for each in json.loads(landscape.gardenbus("get", "csr", "-o", "json"))["items"]
        if section(each, "metadata", "annotations").get(USER) == f"seed:{NEW_SEED}"
    ]
    assert request["spec"]["username"].startswith("bootstrap:")
    async with new_seed.gardenlet():  # with the certificate that it has
        last = renewed_at(landscape, NEW_SEED)

        async def is_renewed() -> None:
            assert renewed_at(landscape, NEW_SEED) > last

        await eventually(is_renewed, within=WITHIN, every=1.0)
