"""Extension objects of shoots on a real API server, with an extension of the tests that obeys Gardener's contract."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from gardenbus.common.api.confirmation import CONFIRMING_PATCH
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.error_codes import NON_RETRYABLE
from gardenbus.common.api.garden.shoot_operations import FORCE_DELETION
from gardenbus.common.errors import Forbidden, NotFound
from gardenbus.gardenlet.domain.extension_objects.contract import TIMESTAMP, ready_problem
from gardenbus.gardenlet.domain.extension_objects.kinds import (
    CLUSTERS,
    GROUP,
    WAITS,
    WaitLimits,
    path_of,
)
from gardenbus.gardenlet.domain.extension_objects.network_policies import network_policies
from gardenbus.gardenlet.domain.flows import OperationType
from gardenbus.gardenlet.domain.managed_resources.definition import DEFINITION
from tests.support.builders import NOW, a_cloudprofile, a_seed, a_shoot
from tests.support.eventually import eventually
from tests.support.kube_clusters import RealCluster, real_clusters
from tests.support.overlaid_seeds import (
    ADDRESS,
    MemoryGarden,
    OverlaidSeed,
    namespace_of_shoot,
    observed_shoot,
    overlaid_seed,
    saved_state,
)
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
async def test_a_kind_that_the_api_has_not_or_in_another_version_is_named(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one") as (seed, _),
    ):
        definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/infrastructures.extensions.gardener.cloud"

        async def is_gone() -> None:
            assert await cluster.client.get(definition) is None

        async def delete() -> None:
            await cluster.client.delete(definition)
            await eventually(is_gone)

        await delete()
        (failure,) = (await seed.run(shoot, "Create")).failures
        assert "CustomResourceDefinition" in failure.message

        await define_kinds(cluster.client, {"Infrastructure": "v1beta1"})
        (failure,) = (await seed.run(shoot, "Create")).failures
        assert "CustomResourceDefinition" in failure.message
        await delete()
        await define_kinds(cluster.client)
        await succeeds(seed, shoot, "Create")


@pytest.mark.timeout(600)
async def test_an_extension_that_loses_its_state_is_given_none_on_the_other_seed(tmp_path: Path, binaries: str) -> None:
    shoot = the_shoot()
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_seed_with(tmp_path, cluster, "one") as (seed, stub),
    ):
        await succeeds(seed, shoot, "Create")
        made = dict(stub.made)
        namespace = namespace_of_shoot(shoot)
        await stub.report("Infrastructure", namespace, "apollo", state=None, resources=None)
        await succeeds(seed, shoot, "Migrate")
        state = saved_state(seed, shoot)
        assert {each["kind"] for each in state["spec"]["extensions"]} == set(WAITS) - {"Infrastructure"}

        stub.made, stub.kept, stub.found = {}, {}, {}  # as an extension that only knows what it is given
        await succeeds(seed, shoot, "Restore", restored_from=state)
        lost = ("Infrastructure", namespace, "apollo")
        assert stub.found.pop(lost) == {}
        assert all(stub.found.values()), "the others have theirs"
        assert {key: name for key, name in stub.made.items() if key != lost} == {
            key: name for key, name in made.items() if key != lost
        }
        await succeeds(seed, shoot, "Delete")


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
