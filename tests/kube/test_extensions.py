"""Extension objects of shoots on a real API server, with an extension of the tests that obeys Gardener's contract."""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.confirmation import CONFIRMING_PATCH
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.garden.error_codes import NON_RETRYABLE
from gardenbus.common.api.garden.shoot_operations import FORCE_DELETION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, NotFound
from gardenbus.gardenlet.domain.extension_objects.contract import TIMESTAMP, ready_problem
from gardenbus.gardenlet.domain.extension_objects.kinds import (
    CLUSTERS,
    GROUP,
    WAITS,
    WaitLimits,
    collection,
    path_of,
)
from gardenbus.gardenlet.domain.extension_objects.network_policies import network_policies
from gardenbus.gardenlet.domain.flows import OperationType, shoot_flow
from gardenbus.gardenlet.domain.managed_resources.definition import DEFINITION
from tests.support.builders import NOW, a_cloudprofile, a_seed, a_shoot, merged
from tests.support.eventually import eventually
from tests.support.gardenlets import Garden, a_configuration, a_garden, conditions
from tests.support.installed_extensions import a_heartbeat, an_installation, hold
from tests.support.kube_clusters import RealCluster, real_clusters
from tests.support.lifecycles import lifecycle
from tests.support.overlaid_lives import COMPLETE, FENCED_OFF, KILLED, Life, live
from tests.support.overlaid_seeds import (
    ADDRESS,
    MemoryGarden,
    OverlaidSeed,
    cut,
    namespace_of_shoot,
    observed_shoot,
    overlaid_seed,
    saved_state,
)
from tests.support.registrations import a_registration
from tests.support.servers import Server
from tests.support.stub_extension import StubExtension, define_kinds, running

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
POOL = {
    "name": "pool-a",
    "machine": {"type": "m5.large", "image": {"name": "gardenlinux", "version": "1592.3.0"}},
    "cri": {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]},
    "minimum": 1,
    "maximum": 3,
    "zones": ["eu-west-1a"],
}
PROVIDER = {
    "infrastructureConfig": {"kind": "InfrastructureConfig", "networks": {"vpc": {"cidr": "10.0.0.0/8"}}},
    "controlPlaneConfig": {"kind": "ControlPlaneConfig"},
    "workers": [POOL],
}
LATE = {"reconcile": "AfterWorker", "delete": "AfterKubeAPIServer"}
REGISTRATION: Document = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "ControllerRegistration",
    "metadata": {"name": "several"},
    "spec": {
        "resources": [
            {"kind": "Extension", "type": "early", "lifecycle": {"reconcile": "BeforeKubeAPIServer"}},
            {
                "kind": "Extension",
                "type": "late",
                "lifecycle": {"reconcile": "AfterWorker", "delete": "AfterKubeAPIServer"},
            },
            {"kind": "Extension", "type": "everywhere", "autoEnable": ["shoot"]},
        ]
    },
}


def the_shoot(name: str = "apollo") -> Document:
    return a_shoot(
        name,
        spec={
            "provider": PROVIDER,
            "credentialsBindingName": "keys",
            "extensions": [{"type": "early"}, {"type": "late", "providerConfig": {"answer": 42}}],
        },
    )


DNS = {
    "internal": {
        "type": "aws-route53",
        "domain": "internal.example.org",
        "zone": "Z1",
        "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "internal", "namespace": "garden"},
    }
}


def the_garden(seed: str, *more: Document) -> MemoryGarden:
    namespace = {"namespace": "garden-dev"}
    return MemoryGarden(
        *more,
        a_seed(seed, spec={"dns": DNS}),
        {"kind": "Secret", "metadata": {"name": "internal", "namespace": "garden"}, "data": {"key": "aQ=="}},
        a_cloudprofile(),
        REGISTRATION,
        {
            "kind": "CredentialsBinding",
            "metadata": {"name": "keys", **namespace},
            "credentialsRef": {"kind": "Secret", "name": "cloud", "namespace": "garden-dev"},
        },
        {"kind": "Secret", "metadata": {"name": "cloud", **namespace}, "data": {"token": "eA=="}},
    )


@asynccontextmanager
async def a_seed_with(
    directory: Path, cluster: RealCluster, name: str, **options: object
) -> AsyncGenerator[tuple[OverlaidSeed, StubExtension]]:
    """A seed with all kinds defined, and the stub at work."""
    async with AsyncExitStack() as stack:
        await define_kinds(cluster.client)
        stub = await stack.enter_async_context(running(StubExtension(cluster.client)))
        seed = await stack.enter_async_context(
            overlaid_seed(directory / name, cluster, the_garden(name), **options)  # type: ignore[arg-type]
        )
        yield seed, stub


async def succeeds(seed: OverlaidSeed, shoot: Document, operation: OperationType, **more: object) -> None:
    result = await seed.run(shoot, operation, **more)  # type: ignore[arg-type]
    assert [failure.message for failure in result.failures] == []
    assert result.is_complete


@pytest.mark.timeout(600)
async def test_a_shoot_is_created_reconciled_and_deleted_with_extensions(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    namespace = namespace_of_shoot(shoot)
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one") as (seed, stub),
    ):
        await succeeds(seed, shoot, "Create")

        assert {kind for kind, _ in await seed.all_objects(shoot)} == set(WAITS)
        assert set(await seed.objects(shoot, "Extension")) == {"early", "late", "everywhere"}
        for kind in WAITS:
            for each in (await seed.objects(shoot, kind)).values():
                assert ready_problem(each) is None
        infrastructure = (await seed.objects(shoot, "Infrastructure"))["apollo"]
        assert section(infrastructure, "spec") == {
            "type": "aws",
            "region": "eu-west-1",
            "secretRef": {"name": "cloudprovider", "namespace": namespace},
            "providerConfig": PROVIDER["infrastructureConfig"],
        }
        made = section(infrastructure, "status", "providerStatus")
        for kind in ("ControlPlane", "Worker"):
            (each,) = (await seed.objects(shoot, kind)).values()
            assert section(each, "spec", "infrastructureProviderStatus") == made
        (worker,) = (await seed.objects(shoot, "Worker")).values()
        (pool,) = section(worker, "spec")["pools"]
        assert pool["userDataSecretRef"]["name"].startswith("osc-gardener-node-agent-pool-a-")
        assert pool["nodeTemplate"] == {"capacity": {"cpu": "2", "gpu": "0", "memory": "8Gi"}}
        spec = section(await cluster.get(f"{CLUSTERS}/{namespace}"), "spec")
        assert section(spec, "shoot", "status")["technicalID"] == namespace
        assert section(spec, "cloudProfile", "spec")["type"] == "aws"
        assert section(spec, "seed", "metadata")["name"] == "one"
        credentials = await cluster.get(f"/api/v1/namespaces/{namespace}/secrets/cloudprovider")
        assert credentials["data"] == {"token": "eA=="}
        order = [name for _, kind, name in stub.history if kind == "Extension"]
        assert order.index("early") < order.index("everywhere") < order.index("late")

        shoot["spec"]["extensions"].pop(0)
        await succeeds(seed, shoot, "Reconcile")

        assert set(await seed.objects(shoot, "Extension")) == {"late", "everywhere"}
        assert section((await seed.objects(shoot, "Infrastructure"))["apollo"], "status", "providerStatus") == made

        await succeeds(seed, shoot, "Delete")

        assert await seed.all_objects(shoot) == []
        assert stub.made == {}
        assert await cluster.client.get(f"/api/v1/namespaces/{namespace}") is None
        assert await cluster.client.get(f"{CLUSTERS}/{namespace}") is None
        deleted = [(kind, name) for operation, kind, name in stub.history if operation == "Delete"]
        assert deleted.index(("Worker", "apollo")) < deleted.index(("ControlPlane", "apollo"))
        assert deleted.index(("Extension", "everywhere")) < deleted.index(("ControlPlane", "apollo"))
        assert deleted.index(("ControlPlane", "apollo")) < deleted.index(("Infrastructure", "apollo"))
        assert deleted.index(("ControlPlane", "apollo")) < deleted.index(("Extension", "late"))


def a_garden_secret(name: str, namespace: str = "garden-dev", **fields: object) -> Document:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": "eA=="}, **fields}


@pytest.mark.timeout(600)
async def test_the_names_of_a_shoot_are_dns_records_until_it_sleeps(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    namespace = namespace_of_shoot(shoot)
    provider = {"type": "google-clouddns", "primary": True, "secretName": "dns", "zones": {"include": ["Z2"]}}
    shoot["spec"]["dns"] = {"domain": "apollo.example.com", "providers": [provider]}
    garden = the_garden("one", a_garden_secret("dns"))
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one") as (_, stub),
        overlaid_seed(tmp_path / "one", cluster, garden, token=2) as seed,
    ):
        await succeeds(seed, shoot, "Create")
        records = await seed.objects(shoot, "DNSRecord")
        assert {name: section(each, "spec") for name, each in records.items()} == {
            "apollo-internal": {
                "type": "aws-route53",
                "secretRef": {"name": "dnsrecord-apollo-internal", "namespace": namespace},
                "zone": "Z1",
                "name": "api.apollo.dev.internal.example.org",
                "recordType": "A",
                "values": [ADDRESS],
                "ttl": 120,
            },
            "apollo-external": {
                "type": "google-clouddns",
                "secretRef": {"name": "dnsrecord-apollo-external", "namespace": namespace},
                "zone": "Z2",
                "name": "api.apollo.example.com",
                "recordType": "A",
                "values": [ADDRESS],
                "ttl": 120,
            },
        }
        metadata = section(records["apollo-external"], "metadata")
        assert metadata["labels"] == {"role": "external", "gardener.cloud/role": "controlplane"}
        assert metadata["annotations"]["dns.gardener.cloud/ip-stack"] == "ipv4"
        for name, data in (("internal", "aQ=="), ("external", "eA==")):
            secret = await cluster.get(f"/api/v1/namespaces/{namespace}/secrets/dnsrecord-apollo-{name}")
            assert secret["data"] == {"key": data}

        await seed.client.merge_patch(
            path_of("DNSRecord", namespace, "apollo-external"), {"spec": {"recordType": "CNAME"}}, manager="tester"
        )
        await succeeds(seed, shoot, "Reconcile")
        assert ("Delete", "DNSRecord", "apollo-external") in stub.history, "a record of another type is made anew"
        assert ("Delete", "DNSRecord", "apollo-internal") not in stub.history

        shoot["spec"]["hibernation"] = {"enabled": True}
        await succeeds(seed, shoot, "Reconcile")
        assert await seed.objects(shoot, "DNSRecord") == {}

        del shoot["spec"]["dns"]["providers"], shoot["spec"]["hibernation"]
        (failure,) = (await seed.run(shoot, "Reconcile")).failures
        assert failure.codes == ("ERR_CONFIGURATION_PROBLEM",)
        assert failure.message.startswith("spec.dns.domain apollo.example.com is below no default domain")
        await succeeds(seed, shoot, "Delete")


@pytest.mark.timeout(600)
async def test_extensions_find_copies_of_what_a_shoot_names(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    core = f"/api/v1/namespaces/{namespace_of_shoot(shoot)}"
    resources = [
        {"name": name, "resourceRef": {"apiVersion": "v1", "kind": kind, "name": name}}
        for kind, name in (("Secret", "first"), ("ConfigMap", "second"))
    ]
    config_map = {**a_garden_secret("second"), "kind": "ConfigMap", "data": {"a": "b"}}
    garden = the_garden("one", a_garden_secret("first", immutable=True, type="Opaque"), config_map)
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one"),
        overlaid_seed(tmp_path / "one", cluster, garden, token=2) as seed,
    ):
        shoot["spec"]["resources"] = resources
        await succeeds(seed, shoot, "Create")
        assert (await cluster.get(f"{core}/configmaps/ref-second"))["data"] == {"a": "b"}
        garden.objects[0]["data"] = {"key": "bmV3"}
        shoot["spec"]["resources"] = resources[:1]
        await succeeds(seed, shoot, "Reconcile")
        assert (await cluster.get(f"{core}/secrets/ref-first"))["data"] == {"key": "bmV3"}
        assert await cluster.client.get(f"{core}/configmaps/ref-second") is None

        shoot["spec"]["resources"] = resources[:1]
        garden.objects.pop(0)
        (failure,) = (await seed.run(shoot, "Reconcile")).failures
        assert failure.message == "secret garden-dev/first of the garden does not exist"
        await succeeds(seed, shoot, "Delete")


async def a_managed_resource_that_nobody_finalizes(cluster: RealCluster, namespace: str) -> str:
    """Have one be in a shoot's namespace, and a Secret of that kind; returns the path of both."""
    await cluster.client.apply(DEFINITIONS + "managedresources.resources.gardener.cloud", DEFINITION, manager="tester")
    finalizers = ["nobody.example.org/here"]
    path = f"/apis/resources.gardener.cloud/v1alpha1/namespaces/{namespace}/managedresources"
    manifest = {"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource"}
    spec = {"secretRefs": [{"name": "kept"}], "keepObjects": True}

    async def is_made() -> None:
        metadata = {"name": "left", "finalizers": finalizers}
        try:
            await cluster.client.create(path, {**manifest, "metadata": metadata, "spec": spec}, manager="tester")
        except NotFound as error:
            raise AssertionError(error.message) from error

    await eventually(is_made)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kept", "finalizers": finalizers}}
    await cluster.client.create(f"/api/v1/namespaces/{namespace}/secrets", secret, manager="tester")
    return path


@pytest.mark.timeout(600)
async def test_a_forced_deletion_is_held_up_by_no_extension_and_no_finalizer(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    namespace = namespace_of_shoot(shoot)
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one") as (seed, stub),
    ):
        await succeeds(seed, shoot, "Create")
        path = await a_managed_resource_that_nobody_finalizes(cluster, namespace)
        stub.behaviours, stub.codes = dict.fromkeys(WAITS, "failing"), ("ERR_INFRA_DEPENDENCIES",)
        (failure,) = (await seed.run(shoot, "Delete")).failures
        assert failure.codes == ("ERR_INFRA_DEPENDENCIES",)

        shoot["metadata"] |= {"deletionTimestamp": NOW, "generation": 2}
        shoot["metadata"].setdefault("annotations", {})[FORCE_DELETION] = "true"
        began = len(stub.history)
        await succeeds(seed, shoot, "Delete", is_forced=True)
        last = {(kind, name): operation for operation, kind, name in stub.history[began:]}
        assert set(last.values()) == {"ForceDelete"}, "whatever was tried until the Cluster said so"
        assert await seed.all_objects(shoot) == []
        assert await cluster.client.items(path) == []
        assert await cluster.client.get(f"/api/v1/namespaces/{namespace}") is None
        assert await cluster.client.get(f"{CLUSTERS}/{namespace}") is None


@pytest.mark.timeout(900)
async def test_a_shoot_takes_the_state_of_its_extensions_to_another_seed(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    async with (
        real_clusters(tmp_path, binaries, ["from", "to"]) as (here, there),
        a_seed_with(tmp_path, here, "one") as (source, source_stub),
        a_seed_with(tmp_path, there, "two") as (destination, destination_stub),
    ):
        await succeeds(source, shoot, "Create")
        made = dict(source_stub.made)
        await succeeds(source, shoot, "Migrate")

        assert await source.all_objects(shoot) == []
        assert source_stub.made == made, "nothing is destroyed"
        state = saved_state(source, shoot)
        assert {(each["kind"], each["name"]) for each in state["spec"]["extensions"]} == {key[::2] for key in made}
        (resource, *_) = state["spec"]["resources"]
        assert section(resource, "resourceRef")["kind"] == "Secret"

        await succeeds(destination, shoot, "Restore", restored_from=state)

        assert destination_stub.made == made, "each is what it was"
        assert {operation for operation, _, _ in destination_stub.history} == {"Restore"}
        await succeeds(destination, shoot, "Delete")
        assert destination_stub.made == {}


@pytest.mark.timeout(600)
async def test_what_extensions_report_is_what_a_step_fails_with(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    waits = {kind: WaitLimits(0.5, 1.0, 5.0) for kind in WAITS}
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one", waits=waits) as (seed, stub),
    ):
        where = f"Error while waiting for Infrastructure {namespace_of_shoot(shoot)}/apollo to become ready: "
        stub.behaviours, stub.codes = {"Infrastructure": "failing"}, ("ERR_INFRA_QUOTA_EXCEEDED", "ERR_OF_NOBODY")
        (failure,) = (await seed.run(shoot, "Create")).failures
        assert failure.message == f"{where}error during reconciliation: Infrastructure cannot be made, as requested."
        assert failure.codes == ("ERR_INFRA_QUOTA_EXCEEDED",)
        assert NON_RETRYABLE.issuperset(failure.codes)

        stub.behaviours = {"Infrastructure": "stuck"}
        (failure,) = (await seed.run(shoot, "Create")).failures
        assert failure.message.startswith(where)

        stub.behaviours = {"Infrastructure": "silent"}
        (failure,) = (await seed.run(shoot, "Create")).failures
        assert failure.message.startswith(where)
        live = (await seed.objects(shoot, "Infrastructure"))["apollo"]
        assert section(live, "metadata", "annotations")["gardener.cloud/operation"] == "reconcile"

        stub.behaviours, stub.failures = {"Infrastructure": "failing"}, 1
        await succeeds(seed, shoot, "Create")

        stub.behaviours = {"ControlPlane": "silent"}
        (failure,) = (await seed.run(shoot, "Delete")).failures
        assert failure.message.endswith(f"ControlPlane {namespace_of_shoot(shoot)}/apollo is still present")
        stub.behaviours = {}
        await succeeds(seed, shoot, "Delete")
        assert stub.made == {}


@pytest.mark.timeout(600)
async def test_a_kind_that_the_api_does_not_have_is_named(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one") as (seed, _),
    ):
        definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/infrastructures.extensions.gardener.cloud"
        await cluster.client.delete(definition)

        async def is_gone() -> None:
            assert await cluster.client.get(definition) is None

        await eventually(is_gone)
        (failure,) = (await seed.run(shoot, "Create")).failures
        assert "CustomResourceDefinition" in failure.message


@pytest.mark.timeout(900)
async def test_an_operation_that_is_cut_anywhere_is_taken_up_from_the_objects_alone(
    tmp_path: Path, binaries: str
) -> None:
    shoot, chance = the_shoot(), random.Random(7)
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one") as (_, stub),
    ):
        operations: tuple[OperationType, ...] = ("Create", "Reconcile", "Delete")
        for token, operation in enumerate(operations, start=2):
            for _ in range(4):
                async with overlaid_seed(tmp_path / "one", cluster, the_garden("one"), token=token) as seed:
                    run = asyncio.create_task(seed.run(shoot, operation))
                    await asyncio.wait([run], timeout=chance.uniform(0.1, 3))
                    await cut(run)
            async with overlaid_seed(tmp_path / "one", cluster, the_garden("one"), token=token) as seed:
                await succeeds(seed, shoot, operation)
                if operation != "Delete":
                    assert {kind for kind, _ in await seed.all_objects(shoot)} == set(WAITS)
                    assert len({key[0] for key in stub.made}) == len(WAITS)
        assert stub.made == {}


def in_order(operation: OperationType) -> list[str]:
    """Steps of an operation, each after those that it depends on."""
    flow, done = shoot_flow(operation, has_workers=True, has_extensions=True), list[str]()
    while ready := flow.ready(done):
        done += [step.name for step in ready]
    return done


@pytest.mark.timeout(1800)
async def test_a_gardenlet_that_is_killed_in_each_step_leaves_its_successor_what_it_needs(
    tmp_path: Path, binaries: str
) -> None:
    shoot, chance = the_shoot(), random.Random(11)
    garden = the_garden("one").objects
    async with real_clusters(tmp_path, binaries, ["api"]) as (cluster,):
        await define_kinds(cluster.client)
        token = 1
        first = Life(
            directory=str(tmp_path / "one"),
            kubeconfig=cluster.kubeconfig,
            garden=garden,
            shoot=shoot,
            operation="Create",
        )
        async with running(StubExtension(cluster.client)) as stub:
            made: dict[tuple[str, str, str], str] = {}
            operations: tuple[OperationType, ...] = ("Create", "Delete")
            for operation in operations:
                steps = in_order(operation)
                for number, step in enumerate(steps):
                    token += 1
                    killed = replace(first, operation=operation, token=token, begun=steps[:number], killed_in=step)
                    assert await live(replace(killed, killed_after=chance.uniform(0, 1))) == KILLED, step
                token += 1
                assert await live(replace(first, operation=operation, token=token)) == COMPLETE
                made = made or dict(stub.made)
            assert len({kind for kind, _, _ in made}) == len(WAITS)
            assert stub.made == {}, "what was made is gone"
            assert await cluster.client.get(f"/api/v1/namespaces/{namespace_of_shoot(shoot)}") is None
            assert await cluster.client.items(CLUSTERS) == []


@pytest.mark.timeout(600)
async def test_of_two_processes_on_one_seed_the_one_with_the_older_token_ends(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        running(StubExtension(cluster.client, {"Infrastructure": "silent"})) as stub,
    ):
        await define_kinds(cluster.client)
        first = Life(
            directory=str(tmp_path / "one"),
            kubeconfig=cluster.kubeconfig,
            garden=the_garden("one").objects,
            shoot=shoot,
            operation="Create",
        )
        older = asyncio.create_task(live(first))
        path = path_of("Infrastructure", namespace_of_shoot(shoot), "apollo")

        async def is_requested(times: int) -> None:
            live_object = await cluster.client.get(path) or {}
            found.add(section(live_object, "metadata", "annotations").get(TIMESTAMP))
            assert len(found - {None}) == times

        found: set[str | None] = set()
        await eventually(lambda: is_requested(1), every=0.05)
        younger = asyncio.create_task(live(replace(first, token=2)))
        await eventually(lambda: is_requested(2), every=0.05)
        stub.behaviours = {}
        assert await younger == COMPLETE
        assert await older == FENCED_OFF
        begun = [(kind, name) for _, kind, name in stub.history]
        assert len(begun) == len(set(begun)), "each object was requested by one of them"
        assert {kind for kind, _ in begun} == set(WAITS)


@pytest.mark.timeout(600)
async def test_a_request_that_was_not_picked_up_is_repeated(
    tmp_path: Path, binaries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gardenbus.gardenlet.backend.extensions.actor.REQUESTED_AGAIN_AFTER_SECONDS", 1.0)
    shoot = the_shoot()
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one") as (seed, stub),
    ):
        stub.behaviours = {"Infrastructure": "silent"}
        creating = asyncio.create_task(seed.run(shoot, "Create"))
        times: set[str] = set()

        async def is_requested_again() -> None:
            live = (await seed.objects(shoot, "Infrastructure"))["apollo"]
            times.add(section(live, "metadata", "annotations")[TIMESTAMP])
            assert len(times) > 1

        await eventually(is_requested_again)
        stub.behaviours = {}
        assert (await creating).is_complete


@pytest.mark.timeout(600)
async def test_what_extensions_report_of_the_health_of_a_shoot_is_in_its_problems(
    tmp_path: Path, binaries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gardenbus.gardenlet.backend.extensions.health.CARE_SECONDS", 0.0)
    shoot = the_shoot()
    namespace = namespace_of_shoot(shoot)
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one") as (seed, stub),
    ):
        await succeeds(seed, shoot, "Create")
        assert await seed.backend.problems(observed_shoot(shoot)) == {}
        condition = {"type": "ControlPlaneHealthy", "status": "False", "reason": "HealthCheckUnsuccessful"}
        await stub.report("ControlPlane", namespace, "apollo", conditions=[{**condition, "message": "It is down."}])
        message = f"ControlPlane extension ({namespace}/apollo) reports failing health check: It is down."
        assert await seed.backend.problems(observed_shoot(shoot)) == {"ControlPlaneHealthy": message}


@pytest.mark.timeout(600)
async def test_extension_objects_and_definitions_are_deleted_only_once_that_is_confirmed(
    tmp_path: Path, binaries: str
) -> None:
    shoot = the_shoot()
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one") as (seed, _),
    ):
        await succeeds(seed, shoot, "Create")
        definition = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/networks.{GROUP}"
        protected = {"metadata": {"labels": {"gardener.cloud/deletion-protected": "true"}}}
        await cluster.client.merge_patch(definition, protected, manager="tester")
        of_shoot = path_of("Network", namespace_of_shoot(shoot), "apollo")

        async def are_protected() -> None:
            for path in (of_shoot, of_shoot.rpartition("/")[0], definition):
                with pytest.raises(Forbidden, match=r'must have a "confirmation\.gardener\.cloud/deletion" annotation'):
                    await cluster.client.delete(path, dryRun="All")

        await eventually(are_protected)
        assert await seed.backend.seed_problem() is None
        await cluster.client.merge_patch(definition, CONFIRMING_PATCH, manager="tester")
        assert await cluster.client.delete(definition, dryRun="All")
        await succeeds(seed, shoot, "Delete")
        assert await seed.all_objects(shoot) == []


@pytest.mark.timeout(600)
async def test_the_namespace_of_a_shoot_has_gardeners_network_policies(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    policies = f"/apis/networking.k8s.io/v1/namespaces/{namespace_of_shoot(shoot)}/networkpolicies"
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one") as (seed, _),
    ):
        await succeeds(seed, shoot, "Create")
        wanted = network_policies(namespace_of_shoot(shoot), a_seed("one"), shoot, None)
        found = {section(each, "metadata")["name"]: each for each in await cluster.client.items(policies)}
        assert found.keys() == {section(each, "metadata")["name"] for each in wanted}
        for each in wanted:
            live = found[section(each, "metadata")["name"]]
            assert section(live, "spec").get("egress") == (section(each, "spec").get("egress") or None)
            assert section(live, "metadata", "annotations") == section(each, "metadata", "annotations")
        await cluster.client.delete(f"{policies}/deny-all")
        await succeeds(seed, shoot, "Reconcile")
        assert await cluster.client.get(f"{policies}/deny-all") is not None


async def _prepared(garden: Garden, cluster: RealCluster, kinds: Sequence[str], seed_name: str = "aws-eu1") -> Document:
    """The configuration of a gardenlet that writes extension objects of some kinds, with all that it needs."""
    await define_kinds(cluster.client)
    directory = garden.directory / seed_name
    directory.mkdir(parents=True)
    (directory / "seed.kubeconfig").write_text(cluster.kubeconfig)
    if await garden.store.get(ObjectKey("cloudprofile", "", "aws")) is None:
        await garden.store.create(a_cloudprofile())
    settings = {
        "kubeconfig": "seed.kubeconfig",
        "resourceManager": "external",
        "kinds": list(kinds),
        "address": ADDRESS,
    }
    return a_configuration(seed_name, backend={"extensions": settings})


@pytest.mark.timeout(600)
async def test_the_gardenlet_has_extensions_take_part_and_reports_what_they_say(
    tmp_path: Path, binaries: str, shared_nats_server: Server
) -> None:
    shoot = a_shoot(spec={"provider": {"workers": [POOL]}})
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_garden(shared_nats_server.url, "extensions", tmp_path / "gardenlet") as garden,
    ):
        configuration = await _prepared(garden, cluster, sorted(WAITS))
        host = await garden.start(configuration)
        async with running(StubExtension(cluster.client, {"Network": "failing"}, ("ERR_INFRA_UNAUTHORIZED",))) as stub:
            with pytest.MonkeyPatch.context() as patched:
                patched.setitem(WAITS, "Network", WaitLimits(0.5, 0.5, 60.0))  # type: ignore[arg-type]
                await garden.place(shoot=shoot)
                failed = await garden.until_state("Failed", operation="Create")
            (error,) = section(failed, "status")["lastErrors"]
            assert error["codes"] == ["ERR_INFRA_UNAUTHORIZED"]
            assert error["taskID"] == "Waiting until shoot network plugin has been reconciled"
            assert error["description"].endswith("error during reconciliation: Network cannot be made, as requested.")

            stub.behaviours = {}
            await garden.kill(host)
            await garden.start(configuration)
            key = ObjectKey("shoot", "garden-dev", "apollo")
            await garden.change(key, bump_generation=True, spec={"purpose": "testing"})
            await garden.until_state("Succeeded")
            networking = section(await garden.get(key), "status")["networking"]
            assert networking == {"nodes": ["10.10.0.0/16"], "egressCIDRs": ["198.51.100.7/32"]}
            namespace = namespace_of_shoot(shoot)
            assert await cluster.client.items(collection("Worker", namespace))

            async def is_saved() -> None:
                state = await garden.get(ObjectKey("shootstate", "garden-dev", "apollo"))
                kinds = {each["kind"] for each in section(state, "spec")["extensions"]}
                assert kinds == set(WAITS) - {"DNSRecord", "Extension"}  # its seed has no domain

            await eventually(is_saved)
            await garden.delete(key)
            await garden.until_gone(key)
            assert stub.made == {}
            assert await cluster.client.get(f"{CLUSTERS}/{namespace}") is None


@pytest.mark.timeout(600)
async def test_a_shoot_begins_once_its_extension_renews_its_heartbeat_in_the_seed(
    tmp_path: Path, binaries: str, shared_nats_server: Server
) -> None:
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_garden(shared_nats_server.url, "heartbeats", tmp_path / "gardenlet") as garden,
    ):
        configuration = await _prepared(garden, cluster, ["Infrastructure"])
        needs = [(kind, "aws") for kind in ("ControlPlane", "Infrastructure", "Worker")]
        await garden.store.create(a_registration("everything", *needs, ("Network", "calico")))
        await garden.store.create(an_installation("everything-1"))
        await garden.start(configuration)
        await garden.until_ready()
        await hold(garden, "one")
        async with running(StubExtension(cluster.client)):
            await garden.place()
            waiting = await garden.until_state("Error", operation="Create")
            description = section(waiting, "status", "lastOperation")["description"]
            assert description.startswith("Extension controllers missing or unready: map[ControlPlane/aws:{} ")
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extension-everything-1"}}
            await cluster.client.create("/api/v1/namespaces", namespace, manager="tester")
            leases = "/apis/coordination.k8s.io/v1/namespaces/extension-everything-1/leases"
            await cluster.client.create(leases, a_heartbeat("everything-1"), manager="tester")
            await hold(garden, "two")
            await garden.until_state("Succeeded")


@pytest.mark.timeout(600)
async def test_a_bastion_has_a_host_as_long_as_it_lives(
    tmp_path: Path, binaries: str, shared_nats_server: Server
) -> None:
    key = ObjectKey("bastion", "garden-dev", "door")
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_garden(shared_nats_server.url, "bastions", tmp_path / "gardenlet") as garden,
    ):
        host = await garden.start(await _prepared(garden, cluster, ["Bastion"]))
        async with running(StubExtension(cluster.client)) as stub:
            await garden.place()
            await garden.until_state("Succeeded")
            spec = {
                "shootRef": {"name": "apollo"},
                "seedName": "aws-eu1",
                "providerType": "aws",
                "sshPublicKey": "ssh-ed25519 AAAA me",
                "ingress": [{"ipBlock": {"cidr": "203.0.113.0/24"}}],
            }
            metadata = {"name": key.name, "namespace": key.namespace}
            kind = {"apiVersion": "operations.gardener.cloud/v1alpha1", "kind": "Bastion"}
            await garden.store.create({**kind, "metadata": metadata, "spec": spec})
            host.gardenlets["aws-eu1"].reconcilers.bastions.stand_by()  # it would be noticed within half a minute

            async def is_reported() -> None:
                status = section(await garden.get(key), "status")
                assert status.get("ingress") == {"ip": "198.51.100.22"}
                assert [each["reason"] for each in status["conditions"]] == ["SuccessfullyReconciled"]

            await eventually(is_reported)
            assert section(await garden.get(key), "metadata")["finalizers"] == ["gardener"]
            (made,) = stub.made
            assert made == ("Bastion", "shoot--dev--apollo", "door")
            await garden.delete(key)
            host.gardenlets["aws-eu1"].reconcilers.bastions.stand_by()
            await garden.until_gone(key)
            assert stub.made == {}


BACKUP: Document = {
    "provider": "aws",
    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "backup", "namespace": "garden"},
}


def with_backup(configuration: Document) -> Document:
    """A configuration whose Seed has a backup."""
    return merged(configuration, {"seedConfig": {"spec": {"backup": BACKUP}}})


def last_operation(core: Document) -> tuple[str, str, int, str]:
    last = section(core, "status", "lastOperation")
    return last["type"], last["state"], last["progress"], last["description"]


@pytest.mark.timeout(600)
async def test_the_bucket_of_a_seed_is_made_by_its_extension_and_goes_with_the_seed(
    tmp_path: Path, binaries: str, shared_nats_server: Server
) -> None:
    seed_key, secret_key = ObjectKey("seed", "", "aws-eu1"), ObjectKey("secret", "garden", "backup")
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_garden(shared_nats_server.url, "buckets", tmp_path / "gardenlet") as garden,
    ):
        await garden.change(secret_key, data={"key": "Zmlyc3Q="})
        await garden.start(with_backup(await _prepared(garden, cluster, ["BackupBucket"])))
        seed = await garden.until_ready()
        uid = section(seed, "metadata")["uid"]
        key = ObjectKey("backupbucket", "", uid)

        async def is_in(*states: str) -> Document:
            bucket = await garden.get(key)
            assert last_operation(bucket)[1] in states, bucket
            return bucket

        bucket = await eventually(lambda: is_in("Processing"))
        initialized = "Reconciliation of BackupBucket state initialized."
        assert last_operation(bucket) == ("Create", "Processing", 0, initialized)
        assert section(bucket, "spec") == {
            "provider": {"type": "aws", "region": "eu-west-1"},
            "credentialsRef": BACKUP["credentialsRef"],
            "seedName": "aws-eu1",
        }
        assert section(bucket, "metadata")["finalizers"] == ["gardener"]
        (owner,) = section(bucket, "metadata")["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Seed", "aws-eu1", uid)
        live = await cluster.get(path_of("BackupBucket", "", uid))
        assert section(live, "spec") == {
            "type": "aws",
            "region": "eu-west-1",
            "secretRef": {"name": f"bucket-{uid}", "namespace": "garden"},
        }

        async with running(StubExtension(cluster.client)) as stub:
            bucket = await eventually(lambda: is_in("Succeeded"))
            assert last_operation(bucket)[2:] == (100, "Backup Bucket has been successfully reconciled.")
            assert section(bucket, "status")["providerStatus"] == {"container": stub.made["BackupBucket", "", uid]}
            generated = {"name": f"generated-bucket-{uid}", "namespace": "garden"}
            assert section(bucket, "status")["generatedSecretRef"] == generated
            generated_key = ObjectKey("secret", "garden", generated["name"])

            async def is_generated_by(value: str) -> None:
                assert section(await garden.get(generated_key), "data") == {"by": value}

            await eventually(lambda: is_generated_by("Zmlyc3Q="))

            async def is_available() -> None:
                assert conditions(await garden.seed())["BackupBucketsReady"] == "True"

            await eventually(is_available)

            await garden.change(secret_key, data={"key": "c2Vjb25k"})
            await eventually(lambda: is_generated_by("c2Vjb25k"))
            assert [operation for operation, _, _ in stub.history] == ["Create", "Reconcile"]

            await garden.delete(seed_key)
            await garden.until_gone(key)
            assert stub.made == {}
            assert await cluster.client.get(f"/api/v1/namespaces/garden/secrets/bucket-{uid}") is None
            await garden.until_gone(seed_key)


@pytest.mark.timeout(600)
async def test_what_an_extension_says_of_a_bucket_is_in_its_status_an_event_and_the_condition_of_the_seed(
    tmp_path: Path, binaries: str, shared_nats_server: Server
) -> None:
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_garden(shared_nats_server.url, "failing-buckets", tmp_path / "gardenlet") as garden,
        running(StubExtension(cluster.client, {"BackupBucket": "failing"}, ("ERR_INFRA_UNAUTHORIZED",))) as stub,
    ):
        await garden.start(with_backup(await _prepared(garden, cluster, ["BackupBucket"])))
        uid = section(await garden.until_ready(), "metadata")["uid"]
        text = "error during reconciliation: BackupBucket cannot be made, as requested."

        async def is_reported() -> Document:
            bucket = await garden.get(ObjectKey("backupbucket", "", uid))
            assert last_operation(bucket) == ("Create", "Error", 50, text)
            error = section(bucket, "status")["lastError"]
            assert error == {"description": text, "codes": ["ERR_INFRA_UNAUTHORIZED"]}
            (condition,) = [each for each in conditions_of(await garden.seed()) if each["type"] == "BackupBucketsReady"]
            assert (condition["status"], condition["reason"]) == ("False", "BackupBucketsError")
            assert condition["message"] == f"The following BackupBuckets have issues:\n* Name: {uid}, Error: {text}"
            return bucket

        await eventually(is_reported)
        stream = garden.subjects.stream("EVENTS")
        subjects = [each for each in await garden.bus.subjects(stream, ">") if uid in each]
        events = [await garden.bus.last(stream, each) for each in subjects]
        assert any(each is not None and b"ReconcileError" in each.body for each in events)
        stub.behaviours = {}

        async def is_well() -> None:
            assert "lastError" not in section(await garden.get(ObjectKey("backupbucket", "", uid)), "status")
            assert conditions(await garden.seed())["BackupBucketsReady"] == "True"

        await eventually(is_well)


@pytest.mark.timeout(600)
async def test_the_entry_of_a_shoot_is_made_before_etcd_and_lives_on_after_the_shoot(
    tmp_path: Path, binaries: str, shared_nats_server: Server
) -> None:
    grace = {"deletionGracePeriodHours": 24, "deletionGracePeriodShootPurposes": ["production"]}
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_garden(shared_nats_server.url, "entries", tmp_path / "gardenlet") as garden,
    ):
        await garden.change(ObjectKey("secret", "garden", "backup"), data={"key": "Zmlyc3Q="})
        configuration = with_backup(await _prepared(garden, cluster, ["BackupBucket", "BackupEntry"]))
        await garden.start(merged(configuration, {"controllers": {"backupEntry": grace}}))
        shoot = await garden.place(shoot=a_shoot(spec={"purpose": "production", "provider": {"workers": []}}))
        uid = section(await garden.seed(), "metadata")["uid"]
        key = ObjectKey("backupentry", "garden-dev", f"shoot--dev--apollo--{shoot.uid}")
        path = path_of("BackupEntry", "", key.name)

        async def entry_is(state: str) -> Document:
            entry = await garden.get(key)
            assert last_operation(entry)[1] == state, entry
            return entry

        entry = await eventually(lambda: entry_is("Processing"))
        assert last_operation(entry)[2:] == (0, "Reconciliation of BackupEntry state initialized.")
        assert await cluster.client.get(path) is None, "its bucket is not ready"
        assert section(await garden.shoot(), "status", "lastOperation")["state"] == "Processing"

        async with running(StubExtension(cluster.client)) as stub:
            await garden.until_state("Succeeded")
            entry = await entry_is("Succeeded")
            assert last_operation(entry)[2:] == (100, "Reconciliation of BackupEntry succeeded.")
            assert section(entry, "spec") == {"bucketName": uid, "seedName": "aws-eu1"}
            assert section(entry, "status")["seedName"] == "aws-eu1"
            metadata = section(entry, "metadata")
            assert metadata["annotations"]["shoot.gardener.cloud/purpose"] == "production"
            assert metadata["finalizers"] == ["gardener"]
            (owner,) = metadata["ownerReferences"]
            assert (owner["kind"], owner["uid"], owner["blockOwnerDeletion"]) == ("Shoot", shoot.uid, False)
            assert section(await cluster.get(path), "spec") == {
                "type": "aws",
                "region": "eu-west-1",
                "secretRef": {"name": f"entry-{key.name}", "namespace": "garden"},
                "bucketName": uid,
                "backupBucketProviderStatus": {"container": stub.made["BackupBucket", "", uid]},
            }
            secret = f"/api/v1/namespaces/garden/secrets/entry-{key.name}"
            generated = await garden.get(ObjectKey("secret", "garden", f"generated-bucket-{uid}"))
            assert (await cluster.get(secret))["data"] == generated["data"] == {"by": "Zmlyc3Q="}

            await garden.delete(ObjectKey("shoot", "garden-dev", "apollo"))
            await garden.until_gone(ObjectKey("shoot", "garden-dev", "apollo"))
            entry = await eventually(lambda: entry_is("Pending"))
            assert last_operation(entry)[3].startswith("Deletion of backup entry is scheduled for 20")
            assert await cluster.client.get(path) is not None, "it lives on"
            forced = {"annotations": {"backupentry.core.gardener.cloud/force-deletion": "true"}}
            await garden.change(key, metadata=forced)
            await garden.until_gone(key)
            assert [kind for kind, _, _ in stub.made] == ["BackupBucket"]
            assert await cluster.client.get(secret) is None


@pytest.mark.timeout(900)
async def test_the_entry_of_a_shoot_moves_with_it_to_the_bucket_of_another_seed(
    tmp_path: Path, binaries: str, shared_nats_server: Server
) -> None:
    kinds = ["BackupBucket", "BackupEntry"]
    async with AsyncExitStack() as stack:
        clusters = await stack.enter_async_context(real_clusters(tmp_path, binaries, ["from", "to"]))
        garden = await stack.enter_async_context(
            a_garden(shared_nats_server.url, "moving-entries", tmp_path / "gardenlet")
        )
        await stack.enter_async_context(lifecycle(garden))
        configurations = [
            with_backup(await _prepared(garden, cluster, kinds, name))
            for name, cluster in zip(("aws-eu1", "aws-eu2"), clusters, strict=True)
        ]
        host = await garden.start(*configurations)
        source_stub, stub = [
            await stack.enter_async_context(running(StubExtension(cluster.client))) for cluster in clusters
        ]
        placed = await garden.place(shoot=a_shoot(spec={"provider": {"workers": []}}))
        await garden.until_state("Succeeded")
        key = ObjectKey("backupentry", "garden-dev", f"shoot--dev--apollo--{placed.uid}")
        path, made = path_of("BackupEntry", "", key.name), source_stub.made["BackupEntry", "", key.name]

        async def is_available() -> str:
            seed = await garden.seed("aws-eu2")
            assert conditions(seed)["BackupBucketsReady"] == "True"
            return str(section(seed, "metadata")["uid"])

        destination = await eventually(is_available)
        body = encode({"namespace": "garden-dev", "name": "apollo", "seed": "aws-eu2"})

        async def is_bound() -> None:
            response = await garden.bus.request(garden.subjects.api("bind"), body)
            assert b'"ok":true' in response, response

        source_stub.behaviours = {"BackupEntry": "silent"}
        await eventually(is_bound)

        async def is_leaving() -> None:
            entry = await garden.get(key)
            assert section(entry, "spec")["seedName"] == "aws-eu2"
            assert last_operation(entry)[0::3] == ("Migrate", "Migration of BackupEntry state initialized.")

        await eventually(is_leaving)
        await garden.kill(host)
        source_stub.behaviours = {}
        await garden.start(*configurations)

        async def has_moved() -> None:
            shoot = await garden.shoot()
            last = section(shoot, "status", "lastOperation")
            assert (last["type"], last["state"]) == ("Restore", "Succeeded"), shoot["status"]
            entry = await garden.get(key)
            assert section(entry, "spec") == {"bucketName": destination, "seedName": "aws-eu2"}
            assert section(entry, "status")["seedName"] == "aws-eu2"
            assert last_operation(entry) == ("Restore", "Succeeded", 100, "Restoration of BackupEntry succeeded.")

        await eventually(has_moved)
        assert await clusters[0].client.get(path) is None
        assert await clusters[0].client.get(f"/api/v1/namespaces/garden/secrets/entry-{key.name}") is None
        assert source_stub.made["BackupEntry", "", key.name] == made, "nothing of it is destroyed"
        assert [each for each in stub.history if each[1] == "BackupEntry"] == [("Restore", "BackupEntry", key.name)]
        assert section(await clusters[1].get(path), "spec")["bucketName"] == destination

        await garden.delete(ObjectKey("shoot", "garden-dev", "apollo"))
        await garden.until_gone(key)
        assert await clusters[1].client.get(path) is None
