"""Finalizers until unused: Gardener's cases of its reconcilers of profiles, classes, quotas and bindings."""

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, RequeueAfter
from gardenbus.controllermanager.controllers import credentials, protection
from gardenbus.controllermanager.watch.cached_bindings import CachedBindings
from gardenbus.controllermanager.watch.loop import Loop
from tests.support.builders import CORE, a_cloudprofile, a_namespaced_cloudprofile, a_shoot
from tests.support.loops import Garden, request_of

LOOPS: dict[str, Loop] = {loop.kind: loop for loop in (*protection.LOOPS, *credentials.LOOPS)}
SECURITY = "security.gardener.cloud/v1alpha1"


def an_object(kind: str, name: str, namespace: str = "garden-dev", api_version: str = CORE, **more: object) -> Document:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def a_secret_binding(name: str = "mine", **more: object) -> Document:
    more = {"provider": {"type": "aws"}, "secretRef": {"name": "key"}, **more}
    return an_object("SecretBinding", name, **more)  # pyright: ignore[reportArgumentType]


def a_credentials_binding(name: str = "mine", kind: str = "Secret", **more: object) -> Document:
    reference = {"apiVersion": "v1", "kind": kind, "name": "key", "namespace": "garden-dev"}
    return an_object(
        "CredentialsBinding", name, "garden-dev", SECURITY, provider={"type": "aws"}, credentialsRef=reference, **more
    )


USES = {
    "cloudprofile": (a_cloudprofile(), a_shoot()),
    "cloudprofile by a NamespacedCloudProfile": (a_cloudprofile(), a_namespaced_cloudprofile()),
    "namespacedcloudprofile": (
        a_namespaced_cloudprofile(),
        a_shoot(spec={"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "own"}}),
    ),
    "exposureclass": (
        an_object("ExposureClass", "public", "", handler="public"),
        a_shoot(spec={"exposureClassName": "public"}),
    ),
    "secretbinding": (a_secret_binding(), a_shoot(spec={"secretBindingName": "mine"})),
    "credentialsbinding": (a_credentials_binding(), a_shoot(spec={"credentialsBindingName": "mine"})),
    "quota by a SecretBinding": (an_object("Quota", "limit"), a_secret_binding(quotas=[{"name": "limit"}])),
    "quota by a CredentialsBinding": (
        an_object("Quota", "limit"),
        a_credentials_binding(quotas=[{"name": "limit", "namespace": "garden-dev"}]),
    ),
}


def key_of(document: Document) -> ObjectKey:
    metadata = document["metadata"]
    return ObjectKey(document["kind"].lower(), metadata.get("namespace", ""), metadata["name"])


@pytest.mark.parametrize(("protected", "user"), USES.values(), ids=USES)
async def test_what_is_used_stays_until_nothing_uses_it(protected: Document, user: Document) -> None:
    garden, key = Garden(), key_of(protected)
    loop = LOOPS[key.kind]
    stored = await garden.add(protected)
    assert await garden.reconcile(loop, key) == Done()
    found = await garden.store.get(key)
    assert found is not None
    assert found.parts.finalizers == ("gardener",)
    assert await garden.reconcile(loop, key) == Done()
    assert await garden.store.get(key) == found, "a second reconcile writes nothing"

    used_by = await garden.add(user)
    assert await garden.delete(key)
    assert isinstance(await garden.reconcile(loop, key), RequeueAfter)
    (message,) = garden.events("ResourceReferenced")
    assert f"{key} is in use" in message
    assert str(used_by.key) in message

    changed = loop.build(garden.context(loop.name)).changed
    changed(key, None, await garden.store.get(key))
    garden.enqueued.clear()
    await garden.delete(used_by.key)
    changed(used_by.key, used_by, None)
    assert (loop.name, key) in garden.enqueued
    assert await garden.reconcile(loop, key) == Done("it is released")
    assert await garden.store.get(key) is None
    assert await garden.reconcile(loop, key) == Done("it is gone")
    assert stored.key == key


async def test_a_deleted_object_without_the_finalizer_gets_none() -> None:
    garden, profile = Garden(), a_cloudprofile(metadata={"finalizers": ["other"]})
    await garden.add(profile)
    await garden.delete(key_of(profile))
    before = await garden.store.get(key_of(profile))
    assert await garden.reconcile(LOOPS["cloudprofile"], key_of(profile)) == Done("it is being deleted")
    assert await garden.store.get(key_of(profile)) == before


CREDENTIALS = {
    "a secret, by a SecretBinding": (an_object("Secret", "key", "garden-dev", "v1"), a_secret_binding()),
    "a secret, by a CredentialsBinding": (an_object("Secret", "key", "garden-dev", "v1"), a_credentials_binding()),
    "an internal secret": (an_object("InternalSecret", "key"), a_credentials_binding(kind="InternalSecret")),
    "a workload identity": (
        an_object("WorkloadIdentity", "key", "garden-dev", SECURITY),
        a_credentials_binding(kind="WorkloadIdentity"),
    ),
}


@pytest.mark.parametrize(("secret", "binding"), CREDENTIALS.values(), ids=CREDENTIALS)
async def test_credentials_are_kept_and_labelled_while_a_binding_refers_to_them(
    secret: Document, binding: Document
) -> None:
    garden, key = Garden(), key_of(secret)
    loop = LOOPS[key.kind]
    await garden.add(secret | {"metadata": {**secret["metadata"], "labels": {"own": "x"}}})
    await garden.reconcile(loop, key)
    found = await garden.store.get(key)
    assert found is not None
    assert found.parts.finalizers == ()

    bound = await garden.add(binding)
    changed = loop.build(garden.context(loop.name)).changed
    changed(bound.key, None, bound)
    assert garden.enqueued == [(loop.name, key)]
    await garden.reconcile(loop, key)
    found = await garden.store.get(key)
    assert found is not None
    assert found.parts.finalizers == ("gardener.cloud/gardener",)
    assert found.labels == {
        "own": "x",
        "provider.shoot.gardener.cloud/aws": "true",
        f"reference.gardener.cloud/{bound.key.kind}": "true",
    }

    assert await garden.delete(key)
    await garden.reconcile(loop, key)
    assert await garden.store.get(key) is not None
    await garden.delete(bound.key)
    await garden.reconcile(loop, key)
    assert await garden.store.get(key) is None


def a_bucket(namespace: str = "garden") -> Document:
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "key", "namespace": namespace}
    spec = {"provider": {"type": "aws", "region": "eu-west-1"}, "credentialsRef": reference, "seedName": "aws-eu1"}
    return an_object("BackupBucket", "u1", "", spec=spec)


async def test_credentials_of_a_bucket_are_kept_without_labels_until_it_is_gone() -> None:
    garden, key, loop = Garden(), ObjectKey("secret", "garden", "key"), LOOPS["secret"]
    await garden.add(an_object("Secret", "key", "garden", "v1"))
    bucket = await garden.add(a_bucket())
    changed = loop.build(garden.context(loop.name)).changed
    changed(bucket.key, None, bucket)
    changed(bucket.key, bucket, bucket)
    assert garden.enqueued == [(loop.name, key)], "and not with each report on the bucket"
    await garden.reconcile(loop, key)
    found = await garden.store.get(key)
    assert found is not None
    assert (found.parts.finalizers, found.labels) == (("gardener.cloud/gardener",), {})

    assert await garden.delete(key)
    await garden.reconcile(loop, key)
    assert await garden.store.get(key) is not None
    context = garden.context("secret")._replace(bindings=CachedBindings())
    assert isinstance(await loop.build(context).reconcile(request_of(loop, key)), Done)
    assert await garden.store.get(key) is not None, "a bucket that is not in the cache keeps it"
    await garden.delete(bucket.key)
    changed(bucket.key, bucket, None)
    assert garden.enqueued[-1] == (loop.name, key)
    await garden.reconcile(loop, key)
    assert await garden.store.get(key) is None


async def test_a_bucket_protects_no_secret_of_a_project() -> None:
    garden, key, loop = Garden(), ObjectKey("secret", "garden-dev", "key"), LOOPS["secret"]
    await garden.add(an_object("Secret", "key", "garden-dev", "v1"))
    bucket = await garden.add(a_bucket("garden-dev"))
    loop.build(garden.context(loop.name)).changed(bucket.key, None, bucket)
    assert garden.enqueued == []
    await garden.reconcile(loop, key)
    found = await garden.store.get(key)
    assert found is not None
    assert found.parts.finalizers == ()


async def test_credentials_that_no_binding_refers_to_any_more_lose_what_was_added() -> None:
    garden, key = Garden(), ObjectKey("secret", "garden-dev", "key")
    await garden.add(an_object("Secret", "key", "garden-dev", "v1"), a_secret_binding(), a_secret_binding("other"))
    before = await garden.store.get(key)
    assert before is not None
    await garden.reconcile(LOOPS["secret"], key)
    await garden.delete(ObjectKey("secretbinding", "garden-dev", "mine"))
    await garden.reconcile(LOOPS["secret"], key)
    kept = await garden.store.get(key)
    assert kept is not None
    assert kept.parts.finalizers
    await garden.delete(ObjectKey("secretbinding", "garden-dev", "other"))
    await garden.reconcile(LOOPS["secret"], key)
    after = await garden.store.get(key)
    assert after is not None
    assert (after.labels, after.parts.finalizers) == (before.labels, before.parts.finalizers)


async def test_a_binding_that_is_in_the_store_and_not_in_the_cache_keeps_its_secret() -> None:
    garden, key = Garden(), ObjectKey("secret", "garden-dev", "key")
    await garden.add(an_object("Secret", "key", "garden-dev", "v1"), a_secret_binding())
    await garden.reconcile(LOOPS["secret"], key)
    before = await garden.store.get(key)

    context = garden.context("secret")._replace(bindings=CachedBindings())
    loop = LOOPS["secret"].build(context)
    assert isinstance(await loop.reconcile(request_of(LOOPS["secret"], key)), Done)
    assert await garden.store.get(key) == before


async def test_a_binding_that_changes_is_found_by_what_it_refers_to_now() -> None:
    garden, bindings = Garden(), CachedBindings()
    old, new = ObjectKey("secret", "garden-dev", "key"), ObjectKey("secret", "garden-dev", "other")
    first = await garden.add(a_secret_binding())
    bindings.changed(first.key, None, first)
    assert bindings.is_referred_to(old)
    second = await garden.change(first.key, lambda binding: binding.update(secretRef={"name": "other"}))
    bindings.changed(first.key, first, second)
    assert (bindings.is_referred_to(old), bindings.referring_to(new)) == (False, [second.document()])
    bindings.changed(first.key, second, None)
    assert not bindings.is_referred_to(new)


async def test_quotas_say_which_bindings_refer_to_them() -> None:
    garden, key = Garden(), ObjectKey("quota", "garden-dev", "limit")
    await garden.add(an_object("Quota", "limit"), a_secret_binding(quotas=[{"name": "limit"}]))
    await garden.reconcile(LOOPS["quota"], key)
    found = await garden.store.get(key)
    assert found is not None
    assert found.labels == {"reference.gardener.cloud/secretbinding": "true"}


@pytest.mark.parametrize(
    "reference",
    [{}, {"name": ""}, {"name": 3}, {"name": "x\nshoot:garden:y"}, {"name": "x:y"}, {"name": "X"}, [], None],
)
async def test_what_is_no_name_is_no_reference(reference: object) -> None:
    garden = Garden()
    stored = await garden.add(a_secret_binding(secretRef=reference, quotas=reference))
    for loop in LOOPS.values():
        loop.build(garden.context(loop.name)).changed(stored.key, None, stored)
    assert garden.enqueued == [("secretbinding", stored.key)]
