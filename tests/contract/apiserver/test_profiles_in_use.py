"""Shoots and profiles against each other, through real servers."""

import asyncio

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import CORE, a_cloudprofile, a_project, a_seed, a_shoot

GOOGLE = {"cloudProfile": {"name": "gcp"}, "provider": {"type": "gcp"}}


def details(error: Document) -> dict[str, str]:
    return {problem["field"]: problem["message"] for problem in error["details"]}


async def test_what_the_profile_does_not_offer_is_refused_at_once_and_the_shoot_is_not_there(
    apiserver: Apiserver,
) -> None:
    await apiserver.request("apply", a_cloudprofile(spec={"regions": [{"name": "eu-west-1"}]}))
    wrong = a_shoot(spec={"kubernetes": {"version": "9.99.0"}, "region": "mars-1", "provider": {"type": "gcp"}})
    error = await apiserver.rejection("apply", wrong)
    assert (error["code"], set(details(error))) == (
        422,
        {"spec.kubernetes.version", "spec.region", "spec.provider.type"},
    )
    assert "1.34.1" in details(error)["spec.kubernetes.version"]
    missing = await apiserver.rejection("apply", a_shoot(spec=GOOGLE | {"credentialsBindingName": "mine"}))
    assert set(details(missing)) == {"spec.cloudProfile.name", "spec.credentialsBindingName"}
    assert await apiserver.kit.store.get(ObjectKey("shoot", "garden-dev", "apollo")) is None


async def test_a_durable_shoot_finds_the_profile_of_its_message_and_is_kept_as_rejected_without_one(
    apiserver: Apiserver,
) -> None:
    early: Document = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [a_shoot("early", spec=GOOGLE), a_cloudprofile("gcp", spec={"type": "gcp"})],
    }
    await apiserver.publish("apply", early)
    await apiserver.until_handled()
    assert await apiserver.now(ObjectKey("shoot", "garden-dev", "early"))
    await apiserver.publish("apply", a_shoot("lost", spec={"cloudProfile": {"name": "azure"}}))
    assert "spec.cloudProfile.name: cloudprofile azure not found: apply it first" in await apiserver.reason()


async def test_what_shoots_use_stays_in_the_profile_and_the_refusal_names_them(apiserver: Apiserver) -> None:
    for name in ("apollo", "gemini"):
        await apiserver.request("apply", a_shoot(name))
    other: Document = {"kubernetes": {"versions": [{"version": "1.35.0"}]}}
    error = await apiserver.rejection("apply", a_cloudprofile(spec=other))
    assert error["message"] == (
        "spec.kubernetes.versions: 1.34.1 stays while shoots use it"
        " (2, for example shoot garden-dev/apollo, shoot garden-dev/gemini)"
    )
    assert (await apiserver.rejection("apply", a_cloudprofile(spec=other), dry_run="true"))["code"] == 403
    assert await apiserver.request("apply", a_cloudprofile(spec={"regions": [{"name": "eu-west-1"}]}))
    assert (await apiserver.rejection("delete.cloudprofile._.aws"))["message"].startswith(
        "cloudprofile aws: it is in use"
    )


async def test_shoots_and_the_removal_of_what_they_use_never_both_succeed(apiserver: Apiserver) -> None:
    await apiserver.start()
    for number in range(10):
        types = [{"name": "m5.large"}, {"name": f"type-{number}"}]
        await apiserver.request("apply", a_cloudprofile(spec={"machineTypes": types}))
        pool = {"provider": {"workers": [{"name": "a", "machine": {"type": f"type-{number}"}}]}}
        shoot, removal = await asyncio.gather(
            apiserver.response("apply", a_shoot(f"racer-{number}", spec=pool)),
            apiserver.response("apply", a_cloudprofile(spec={"machineTypes": types[:1]})),
        )
        assert shoot["ok"] != removal["ok"], (shoot, removal)
        if shoot["ok"]:
            await apiserver.request(
                "patch.shoot.garden-dev." + f"racer-{number}",
                {"spec": {"provider": {"workers": [{"name": "a", "machine": {"type": "m5.large"}}]}}},
            )


async def test_a_binding_in_use_and_the_namespace_of_a_project_are_not_deleted(apiserver: Apiserver) -> None:
    binding: Document = {
        "apiVersion": CORE,
        "kind": "SecretBinding",
        "metadata": {"name": "mine", "namespace": "garden-dev"},
        "provider": {"type": "aws"},
        "secretRef": {"name": "mine"},
    }
    missing = await apiserver.rejection("apply", binding)
    assert (missing["code"], missing["message"]) == (
        422,
        "secretRef: secret garden-dev/mine not found: apply it first",
    )
    await apiserver.request("apply", {"apiVersion": "v1", "kind": "Secret", "metadata": binding["metadata"]})
    await apiserver.request("apply", binding)
    await apiserver.request("apply", a_shoot(spec={"secretBindingName": "mine"}))
    assert "shoot garden-dev/apollo" in (await apiserver.rejection("delete.secretbinding.garden-dev.mine"))["message"]

    for name in ("garden-empty", "garden-free"):
        await apiserver.request("apply", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await apiserver.request("apply", a_project("empty", "garden-empty"))
    error = await apiserver.rejection("delete.namespace._.garden-empty")
    assert error["code"] == 403
    assert "project empty" in error["message"]
    assert "gardenbus delete project empty --confirm" in error["message"]
    assert await apiserver.request("delete.namespace._.garden-free")


async def test_what_waits_until_it_is_unused_may_be_deleted_and_keeps_its_finalizer_meanwhile(
    apiserver: Apiserver,
) -> None:
    for document in (a_project(), a_cloudprofile(), a_shoot("waiting")):
        await apiserver.request("apply", document)
    for kind, name in (("cloudprofile", "aws"), ("project", "dev")):
        key = ObjectKey(kind, "", name)
        stored = await apiserver.kit.store.get(key)
        assert stored is not None
        document = stored.document()
        annotations = {"confirmation.gardener.cloud/deletion": "true"}
        document["metadata"] |= {"finalizers": ["gardener"], "annotations": annotations}
        await apiserver.kit.store.update(stored, document)
        await apiserver.request(f"delete.{kind}._.{name}")
        stored = await apiserver.kit.store.get(key)
        assert stored is not None
        assert stored.is_deleting

        patch: Document = {"kind": kind, "name": name, "patch": {"metadata": {"finalizers": []}}}
        error = await apiserver.rejection("patch", patch)
        assert error["code"] == 403
        assert f"metadata.finalizers: {kind} {name} is in use" in error["message"]

    late = await apiserver.rejection("apply", a_shoot("late"))
    assert "the project dev is being deleted" in late["message"]


async def test_a_bucket_is_of_a_seed_that_is_there_and_stays_while_entries_are_in_it(apiserver: Apiserver) -> None:
    bucket: Document = {"apiVersion": CORE, "kind": "BackupBucket", "metadata": {"name": "store"}}
    secret: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "garden-dev", "name": "backup"}}
    bucket["spec"] = {
        "provider": {"type": "aws", "region": "eu-west-1"},
        "credentialsRef": {"apiVersion": "v1", "kind": "Secret", **secret["metadata"]},
        "seedName": "aws-eu1",
    }
    entry: Document = {
        "apiVersion": CORE,
        "kind": "BackupEntry",
        "metadata": {"namespace": "garden-dev", "name": "one"},
    }
    entry["spec"] = {"bucketName": "store", "seedName": "aws-eu1"}
    await apiserver.request("apply", secret)
    assert set(details(await apiserver.rejection("apply", bucket))) == {"spec.seedName"}
    await apiserver.request("apply", a_seed("aws-eu1"))
    assert set(details(await apiserver.rejection("apply", entry))) == {"spec.bucketName"}
    await apiserver.request("apply", bucket)
    await apiserver.request("apply", entry)
    rejected = await apiserver.rejection("delete", bucket)
    assert rejected["message"].startswith(
        "backupbucket store: BackupEntries are in it (1, for example backupentry garden-dev"
    )
    await apiserver.request("delete", entry)
    await apiserver.request("delete", bucket)
