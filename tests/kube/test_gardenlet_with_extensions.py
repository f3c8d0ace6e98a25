"""A gardenlet whose extensions make bastions, buckets, entries and parts of shoots, on a real API server."""

import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.gardenlet.domain.extension_objects.kinds import (
    CLUSTERS,
    WAITS,
    WaitLimits,
    collection,
    path_of,
)
from tests.kube.test_extensions import POOL
from tests.support.builders import a_cloudprofile, a_shoot, merged
from tests.support.eventually import eventually
from tests.support.gardenlets import Garden, a_configuration, a_garden, conditions
from tests.support.installed_extensions import a_heartbeat, an_installation, hold
from tests.support.kube_clusters import RealCluster, real_clusters
from tests.support.lifecycles import lifecycle
from tests.support.overlaid_seeds import (
    ADDRESS,
    namespace_of_shoot,
)
from tests.support.registrations import a_registration
from tests.support.servers import Server
from tests.support.stub_extension import StubExtension, define_kinds, running

_NUMBERS = itertools.count(1)


class OneSeed(NamedTuple):
    """An API server that is a seed's, and a garden whose gardenlet is not started yet."""

    cluster: RealCluster
    garden: Garden


@pytest.fixture
async def one_seed(tmp_path: Path, binaries: str, shared_nats_server: Server) -> AsyncGenerator[OneSeed]:
    async with (
        real_clusters(tmp_path, binaries, ["api"]) as (cluster,),
        a_garden(shared_nats_server.url, f"extensions-{next(_NUMBERS)}", tmp_path / "gardenlet") as garden,
    ):
        yield OneSeed(cluster, garden)


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
async def test_the_gardenlet_has_extensions_take_part_and_reports_what_they_say(one_seed: OneSeed) -> None:
    shoot = a_shoot(spec={"provider": {"workers": [POOL]}})
    cluster, garden = one_seed
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
async def test_a_shoot_begins_once_its_extension_renews_its_heartbeat_in_the_seed(one_seed: OneSeed) -> None:
    cluster, garden = one_seed
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
async def test_a_bastion_has_a_host_as_long_as_it_lives(one_seed: OneSeed) -> None:
    key = ObjectKey("bastion", "garden-dev", "door")
    cluster, garden = one_seed
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
async def test_the_bucket_of_a_seed_is_made_by_its_extension_and_goes_with_the_seed(one_seed: OneSeed) -> None:
    seed_key, secret_key = ObjectKey("seed", "", "aws-eu1"), ObjectKey("secret", "garden", "backup")
    cluster, garden = one_seed
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
    one_seed: OneSeed,
) -> None:
    cluster, garden = one_seed
    async with running(StubExtension(cluster.client, {"BackupBucket": "failing"}, ("ERR_INFRA_UNAUTHORIZED",))) as stub:
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
async def test_the_entry_of_a_shoot_is_made_before_etcd_and_lives_on_after_the_shoot(one_seed: OneSeed) -> None:
    grace = {"deletionGracePeriodHours": 24, "deletionGracePeriodShootPurposes": ["production"]}
    cluster, garden = one_seed
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
        assert stub.found["BackupEntry", "", key.name] == source_stub.kept["BackupEntry", "", key.name]
        assert stub.changed == []
        assert section(await clusters[1].get(path), "spec")["bucketName"] == destination

        await garden.delete(ObjectKey("shoot", "garden-dev", "apollo"))
        await garden.until_gone(key)
        assert await clusters[1].client.get(path) is None
