"""Scenes with ManagedResources on a real API server, for whichever resource manager acts on them."""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import yaml

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.common.api.conditions import conditions_of
from gardenbus.common.api.document import Document, section
from gardenbus.gardenlet.domain.managed_resources.references import listed_references
from tests.support.eventually import eventually

MANAGED_RESOURCES = "/apis/resources.gardener.cloud/v1alpha1"
ORIGIN = "resources.gardener.cloud/origin"
DESCRIPTION = "resources.gardener.cloud/description"
MANAGED_BY = {"resources.gardener.cloud/managed-by": "gardener"}
FINALIZER = "resources.gardener.cloud/gardener-resource-manager"
IGNORE = "resources.gardener.cloud/ignore"
ALL_APPLIED = ("True", "ApplySucceeded", "All resources are applied.")
ALL_HEALTHY = ("True", "ResourcesHealthy", "All resources are healthy.")
_TESTER = "tester"


def a_config_map(name: str, value: str = "1", **metadata: Any) -> Document:
    """A ConfigMap in the namespace `target`."""
    metadata = {"name": name, "namespace": "target", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}


def a_deployment(**annotations: str) -> Document:
    """A Deployment of two replicas, whose pods nobody runs."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "target", **({"annotations": annotations} if annotations else {})},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }


class ManagedScenes:
    """The objects of one API server, and what is expected of them. `namespace` holds the ManagedResources."""

    def __init__(self, client: KubernetesClient, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def prepare(self) -> None:
        """Create the namespaces."""
        for name in (self.namespace, "target"):
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await self.client.apply(f"/api/v1/namespaces/{name}", manifest, manager=_TESTER)

    # ------------------------------------------------------------------------------------------ by hand

    def path(self, kind: str, name: str) -> str:
        """Path of an object in its namespace."""
        if kind == "managedresources":
            return f"{MANAGED_RESOURCES}/namespaces/{self.namespace}/{kind}/{name}"
        if kind == "deployments":
            return f"/apis/apps/v1/namespaces/target/{kind}/{name}"
        return f"/api/v1/namespaces/{self.namespace if kind == 'secrets' else 'target'}/{kind}/{name}"

    async def secret(self, name: str, data: Mapping[str, bytes], **metadata: Any) -> None:
        """Write a Secret beside the ManagedResources."""
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self.namespace, **metadata},
            "data": encoded,
        }
        await self.client.apply(self.path("secrets", name), manifest, manager=_TESTER)

    async def managed_resource(self, name: str, secret: str = "", **spec: Any) -> None:
        """Write a ManagedResource."""
        manifest = {
            "apiVersion": "resources.gardener.cloud/v1alpha1",
            "kind": "ManagedResource",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"secretRefs": [{"name": secret or f"mr-{name}"}], **spec},
        }
        await self.client.apply(self.path("managedresources", name), manifest, manager=_TESTER)

    async def bundle(self, name: str, *documents: Document, **spec: Any) -> None:
        """Write a ManagedResource of class seed, or another, with its Secret."""
        text = "---\n".join(yaml.safe_dump(each) for each in documents)
        await self.secret(f"mr-{name}", {"objects.yaml": text.encode()})
        spec = {"class": "seed", **spec}
        await self.managed_resource(name, **{key: value for key, value in spec.items() if value is not None})

    async def patch(self, kind: str, name: str, patch: Document) -> None:
        """Patch an object by hand."""
        await self.client.merge_patch(self.path(kind, name), patch, manager=_TESTER)

    async def ignore(self, name: str, value: str | None) -> None:
        """Annotate a ManagedResource."""
        await self.patch("managedresources", name, {"metadata": {"annotations": {IGNORE: value}}})

    async def delete(self, kind: str, name: str) -> None:
        """Delete an object by hand."""
        await self.client.delete(self.path(kind, name))

    async def get(self, kind: str, name: str) -> Document:
        """An object that is there. Raises LookupError."""
        found = await self.client.get(self.path(kind, name))
        if found is None:
            raise LookupError(f"{kind} {name}")
        return found

    async def is_there(self, kind: str, name: str) -> bool:
        """True if an object is there."""
        return await self.client.get(self.path(kind, name)) is not None

    # ------------------------------------------------------------------------------------------ expectations

    async def condition(self, name: str, kind: str) -> tuple[str, str, str]:
        """A condition of a ManagedResource. Raises LookupError."""
        status = section(await self.get("managedresources", name), "status")
        for each in conditions_of({"status": status}):
            if each["type"] == kind:
                return (each["status"], each["reason"], each["message"])
        raise LookupError(kind)

    async def until(self, name: str, expected: tuple[str, str, str], kind: str = "ResourcesApplied") -> None:
        """Wait for a condition."""

        async def found() -> None:
            assert await self.condition(name, kind) == expected

        await eventually(found)

    async def until_reason(self, name: str, reason: str, kind: str = "ResourcesApplied") -> str:
        """Wait for a reason; returns its message."""

        async def found() -> str:
            condition = await self.condition(name, kind)
            assert condition[1] == reason, condition
            return condition[2]

        return await eventually(found)

    async def until_applied(self, name: str) -> None:
        """Wait until the present generation, and its Secrets, are applied."""

        async def applied() -> None:
            live = await self.get("managedresources", name)
            assert section(live, "status").get("observedGeneration") == section(live, "metadata")["generation"]
            assert await self.condition(name, "ResourcesApplied") == ALL_APPLIED

        await eventually(applied)

    async def until_data(self, name: str, value: str) -> None:
        """Wait until a ManagedResource's ConfigMap is as its manifest."""

        async def there() -> None:
            assert section(await self.get("configmaps", name), "data") == {"a": value}

        await eventually(there)

    async def until_gone(self, kind: str, name: str) -> None:
        """Wait until an object is gone."""

        async def gone() -> None:
            assert not await self.is_there(kind, name)

        await eventually(gone)

    async def listed(self, name: str) -> list[str]:
        """Objects in status.resources, as `<kind>/<name>`."""
        references = listed_references(await self.get("managedresources", name))
        return [f"{each.kind}/{each.name}" for each in references]


# ---------------------------------------------------------------------------------------------- scenes


async def objects_are_applied_with_labels_and_origin(scenes: ManagedScenes) -> None:
    """Labels, origin, status.resources, conditions of a Deployment that nobody rolls out."""
    await scenes.bundle("first", a_config_map("one"), a_deployment(), injectLabels={"foo": "bar"})
    await scenes.until_applied("first")
    labels = {"foo": "bar", **MANAGED_BY}
    one, web = await scenes.get("configmaps", "one"), await scenes.get("deployments", "web")
    assert section(one, "metadata", "labels") == labels
    identity = await scenes.client.get("/api/v1/namespaces/kube-system/configmaps/cluster-identity")
    name = section(identity or {}, "data")["cluster-identity"]
    origin = {ORIGIN: f"{name}:{scenes.namespace}/first"}
    assert origin.items() <= section(one, "metadata", "annotations").items()
    assert section(one, "metadata", "annotations")[DESCRIPTION].startswith("DO NOT EDIT")
    assert section(web, "spec", "template", "metadata", "labels") == {"app": "web", **labels}
    assert section(web, "spec", "selector", "matchLabels") == {"app": "web"}
    live = await scenes.get("managedresources", "first")
    assert section(live, "metadata")["finalizers"] == [f"{FINALIZER}-seed"]
    common = {"labels": labels, "namespace": "target"}
    assert section(live, "status")["resources"] == [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "one", **common},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", **common},
    ]
    await scenes.until_reason("first", "DeploymentUnhealthy", "ResourcesHealthy")
    message = await scenes.until_reason("first", "DeploymentProgressing", "ResourcesProgressing")
    assert message.startswith('Deployment "target/web" is progressing: ')


async def drift_is_put_back_but_labels_of_others_stay(scenes: ManagedScenes) -> None:
    """Data that was changed or added by hand goes at the next sync."""
    change = {"data": {"a": "2", "b": "mine"}, "metadata": {"labels": {"mine": "yes"}}}
    await scenes.patch("configmaps", "one", change)
    await scenes.until_data("one", "1")
    assert section(await scenes.get("configmaps", "one"), "metadata", "labels")["mine"] == "yes"
    await scenes.delete("configmaps", "one")
    await scenes.until_data("one", "1")


async def replicas_are_put_back_unless_they_are_preserved(scenes: ManagedScenes) -> None:
    """`preserve-replicas` leaves them to whoever scales."""

    async def replicas(expected: int) -> None:
        assert section(await scenes.get("deployments", "web"), "spec")["replicas"] == expected

    await scenes.patch("deployments", "web", {"spec": {"replicas": 5}})
    await eventually(lambda: replicas(2))
    preserving = a_deployment(**{"resources.gardener.cloud/preserve-replicas": "true"})
    await scenes.bundle("first", a_config_map("one"), preserving)
    await scenes.until_applied("first")
    await scenes.patch("deployments", "web", {"spec": {"replicas": 4}})
    await scenes.bundle("first", a_config_map("one", "3"), preserving)
    await scenes.until_data("one", "3")
    await eventually(lambda: replicas(4))


async def ignored_ones_are_left_alone(scenes: ManagedScenes) -> None:
    """A ManagedResource, and a single object, that are ignored; and mode Ignore."""
    await scenes.bundle("third", a_config_map("kept"))
    await scenes.until_applied("third")
    await scenes.ignore("third", "true")
    message = "ManagedResource is marked to be ignored."
    await scenes.until("third", ("True", "ManagedResourceIgnored", message))
    assert await scenes.condition("third", "ResourcesProgressing") == ("False", "ManagedResourceIgnored", message)
    await scenes.patch("configmaps", "kept", {"data": {"a": "9"}})
    await scenes.ignore("third", None)
    await scenes.until_data("kept", "1")
    await scenes.until("third", ALL_HEALTHY, "ResourcesHealthy")
    await scenes.bundle("second", a_config_map("loose", annotations={IGNORE: "true"}))
    await scenes.until_applied("second")
    metadata = section(await scenes.get("configmaps", "loose"), "metadata")
    assert (metadata.get("labels"), metadata["annotations"]) == (None, {IGNORE: "true"})
    await scenes.bundle("third", a_config_map("kept", annotations={"resources.gardener.cloud/mode": "Ignore"}))

    async def released() -> None:
        assert await scenes.listed("third") == []

    await eventually(released)
    metadata = section(await scenes.get("configmaps", "kept"), "metadata")
    assert (metadata.get("annotations"), metadata["labels"]) == (None, MANAGED_BY)
    await scenes.until("third", ALL_HEALTHY, "ResourcesHealthy")


async def failures_are_reported(scenes: ManagedScenes) -> None:
    """An unknown kind, an invalid object, a missing Secret, a document that is no YAML."""
    await scenes.bundle("unknown", {"apiVersion": "nobody.example/v1", "kind": "Thing", "metadata": {"name": "x"}})
    no_match = 'no matches for kind "Thing" in version "nobody.example/v1"'
    failed = f'error during apply of object "nobody.example/v1/Thing/default/x": {no_match}'
    await scenes.until("unknown", ("False", "ApplyFailed", failed))
    status = section(await scenes.get("managedresources", "unknown"), "status")
    assert "observedGeneration" not in status or status["observedGeneration"] == 0
    assert (await scenes.condition("unknown", "ResourcesHealthy"))[:2] == ("Unknown", "ChecksPending")
    await scenes.delete("managedresources", "unknown")
    await scenes.bundle(
        "invalid", a_config_map("a-good"), a_config_map("b-bad", labels={"a b": "c"}), a_config_map("c-good")
    )
    message = await scenes.until_reason("invalid", "ApplyFailed")
    invalid = 'ConfigMap "b-bad" is invalid: metadata.labels: Invalid value: "a b"'
    assert message.startswith(f'error during apply of object "v1/ConfigMap/target/b-bad": {invalid}')
    assert await scenes.is_there("configmaps", "a-good")
    assert not await scenes.is_there("configmaps", "c-good")
    assert await scenes.listed("invalid") == []
    await scenes.managed_resource("nosecret", "nowhere", **{"class": "seed"})
    await scenes.until("nosecret", ("False", "CannotReadSecret", 'Secret "nowhere" not found'))
    documents = (yaml.safe_dump(a_config_map("d-good")), "{{{\n", yaml.safe_dump(a_config_map("e-good")))
    await scenes.secret("mr-garbage", {"objects.yaml": "---\n".join(documents).encode()})
    await scenes.managed_resource("garbage", **{"class": "seed"})
    message = await scenes.until_reason("garbage", "DecodingFailed")
    where = f"index 1 in 'objects.yaml' in secret '{scenes.namespace}/mr-garbage'"
    no_yaml = "error converting YAML to JSON: yaml: "
    assert message.startswith(f"Could not decode all new resources: [Could not decode resource at {where}: {no_yaml}")
    assert message.endswith(".]")
    assert await scenes.listed("garbage") == ["ConfigMap/d-good", "ConfigMap/e-good"]


async def a_removal_that_hangs_holds_up_new_objects(scenes: ManagedScenes) -> None:
    """A finalizer of somebody else's on an object that left its bundle."""
    await scenes.bundle("leave", a_config_map("f1"), a_config_map("f2", finalizers=["example.com/hold"]))
    await scenes.until_applied("leave")
    await scenes.bundle("leave", a_config_map("f3"))
    pending = 'deletion of old resource "v1/ConfigMap/target/f2" is still pending'
    message = f"Could not clean all old resources: 1 error occurred: {pending}"
    await scenes.until("leave", ("Progressing", "DeletionPending", message))
    await scenes.until_gone("configmaps", "f1")
    assert not await scenes.is_there("configmaps", "f3")
    await scenes.patch("configmaps", "f2", {"metadata": {"finalizers": None}})
    await scenes.until_data("f3", "1")
    await scenes.until_applied("leave")
    assert await scenes.listed("leave") == ["ConfigMap/f3"]


async def another_class_makes_the_objects_anew(scenes: ManagedScenes) -> None:
    """From nobody's class to `seed`, and on to the shoot's."""
    await scenes.bundle("klass", a_config_map("g"), **{"class": "nobodys"})
    await scenes.bundle("klass", a_config_map("g"))
    await scenes.until_applied("klass")
    before = section(await scenes.get("configmaps", "g"), "metadata")["uid"]
    await scenes.patch("managedresources", "klass", {"spec": {"class": None}})

    async def moved() -> None:
        assert section(await scenes.get("managedresources", "klass"), "metadata")["finalizers"] == [FINALIZER]
        assert section(await scenes.get("configmaps", "g"), "metadata")["uid"] != before

    await eventually(moved)


async def deletion_takes_objects_along_unless_they_are_kept(scenes: ManagedScenes) -> None:
    """keepObjects; an ignored ManagedResource; one with objects of two kinds."""
    await scenes.bundle("keeps", a_config_map("kept2"), keepObjects=True)
    await scenes.until_applied("keeps")
    await scenes.delete("managedresources", "keeps")
    await scenes.until_gone("managedresources", "keeps")
    assert await scenes.is_there("configmaps", "kept2")
    await scenes.ignore("second", "true")
    await scenes.delete("managedresources", "second")
    await scenes.until_gone("managedresources", "second")
    assert not await scenes.is_there("configmaps", "loose")
    await scenes.delete("managedresources", "first")
    await scenes.until_gone("managedresources", "first")
    assert not await scenes.is_there("configmaps", "one")
    assert not await scenes.is_there("deployments", "web")


async def tokens_are_requested(scenes: ManagedScenes) -> None:
    """A Secret of the token requestor gets a token of the shoot's ServiceAccount."""
    account = "serviceaccount.resources.gardener.cloud"
    annotations = {
        f"{account}/name": "me",
        f"{account}/namespace": "kube-system",
        f"{account}/token-expiration-duration": "1h",
    }
    labels = {"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}
    await scenes.secret("shoot-access-me", {}, labels=labels, annotations=annotations)

    async def filled() -> dict[str, Any]:
        secret = await scenes.get("secrets", "shoot-access-me")
        token = base64.b64decode(section(secret, "data")["token"]).decode()
        assert f"{account}/token-renew-timestamp" in section(secret, "metadata", "annotations")
        payload = token.split(".")[1]
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return claims

    claims = await eventually(filled)
    assert claims["aud"] == ["gardener"]
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["sub"] == "system:serviceaccount:kube-system:me"
    found = await scenes.client.get("/api/v1/namespaces/kube-system/serviceaccounts/me")
    assert (found or {})["automountServiceAccountToken"] is False


async def compressed_manifests_are_applied(scenes: ManagedScenes) -> None:
    """A key that ends with `.br`, as extensions of Gardener write them."""
    from importlib import import_module  # noqa: PLC0415 - untyped

    brotli: Any = import_module("brotli")
    text = yaml.safe_dump(a_config_map("pressed")).encode()
    await scenes.secret("mr-pressed", {"data.yaml.br": brotli.compress(text)})
    await scenes.managed_resource("pressed", **{"class": "seed"})
    await scenes.until_data("pressed", "1")
    await scenes.until_applied("pressed")
    checksum = section(await scenes.get("managedresources", "pressed"), "status")["secretsDataChecksum"]
    assert checksum == hashlib.sha256(brotli.compress(text)).hexdigest()


async def objects_that_cannot_be_changed_are_reported_or_made_anew(scenes: ManagedScenes) -> None:
    """A field that is immutable: of a Deployment, and of an immutable ConfigMap."""
    await scenes.bundle("fixed", a_deployment(), {**a_config_map("frozen"), "immutable": True})
    await scenes.until_applied("fixed")
    before = section(await scenes.get("configmaps", "frozen"), "metadata")["uid"]
    await scenes.bundle("fixed", a_deployment(), {**a_config_map("frozen", "2"), "immutable": True})
    await scenes.until_data("frozen", "2")
    await scenes.until_applied("fixed")
    assert section(await scenes.get("configmaps", "frozen"), "metadata")["uid"] != before
    other = a_deployment()
    other["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    other["spec"]["template"]["metadata"] = {"labels": {"app": "other"}}
    await scenes.bundle("fixed", other)
    message = await scenes.until_reason("fixed", "ApplyFailed")
    invalid = 'Deployment.apps "web" is invalid: spec.selector: Invalid value: '
    assert message.startswith(f'error during apply of object "apps/v1/Deployment/target/web": {invalid}'), message
    assert message.endswith(": field is immutable"), message
    assert section(await scenes.get("deployments", "web"), "spec", "selector") == {"matchLabels": {"app": "web"}}
    other["metadata"]["annotations"] = {"resources.gardener.cloud/delete-on-invalid-update": "true"}
    await scenes.bundle("fixed", other)
    await scenes.until_applied("fixed")
    assert section(await scenes.get("deployments", "web"), "spec", "selector") == {"matchLabels": {"app": "other"}}
    await scenes.delete("managedresources", "fixed")
    await scenes.until_gone("managedresources", "fixed")


async def an_object_of_two_is_as_the_last_of_them_has_it(scenes: ManagedScenes) -> None:
    """Two ManagedResources with the same object, and the end of one; the other makes it anew."""
    await scenes.bundle("mine", a_config_map("shared", "mine"))
    await scenes.until_applied("mine")
    await scenes.bundle("yours", a_config_map("shared", "yours"))
    await scenes.until_applied("yours")
    origin = str(section(await scenes.get("configmaps", "shared"), "metadata", "annotations")[ORIGIN])
    assert origin.rpartition(":")[2] in {f"{scenes.namespace}/{name}" for name in ("mine", "yours")}
    assert await scenes.listed("mine") == await scenes.listed("yours") == ["ConfigMap/shared"]
    await scenes.delete("managedresources", "yours")
    await scenes.until_gone("managedresources", "yours")
    await scenes.until_data("shared", "mine")
    await scenes.delete("managedresources", "mine")
    await scenes.until_gone("managedresources", "mine")
    await scenes.until_gone("configmaps", "shared")


SCENES = (
    objects_are_applied_with_labels_and_origin,
    drift_is_put_back_but_labels_of_others_stay,
    replicas_are_put_back_unless_they_are_preserved,
    ignored_ones_are_left_alone,
    failures_are_reported,
    a_removal_that_hangs_holds_up_new_objects,
    another_class_makes_the_objects_anew,
    deletion_takes_objects_along_unless_they_are_kept,
    tokens_are_requested,
    compressed_manifests_are_applied,
    objects_that_cannot_be_changed_are_reported_or_made_anew,
    an_object_of_two_is_as_the_last_of_them_has_it,
)
