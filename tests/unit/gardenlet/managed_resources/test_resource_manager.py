"""The resource manager does with the objects of ManagedResources what Gardener's does."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
import yaml

from gardenbus.gardenlet.resource_manager.applier import DesiredObject, ObjectApplier
from gardenbus.gardenlet.resource_manager.reconciler import ManagedResourceReconciler
from gardenbus.gardenlet.resource_manager.source import FullName, SourceCluster
from tests.support.eventually import eventually
from tests.support.resource_managers import NAMESPACE, Managed, a_config_map, a_managed_resource, a_resource_manager
from tests.support.stub_kubernetes import StubKubernetes, a_stub_kubernetes

Document = dict[str, Any]
APPLIED = ("True", "ApplySucceeded", "All resources are applied.")
FINALIZER = "resources.gardener.cloud/gardener-resource-manager"
ORIGIN = "resources.gardener.cloud/origin"
HOLD = {"finalizers": ["example.com/hold"]}


@pytest.fixture
async def seed() -> AsyncGenerator[StubKubernetes]:
    async with a_stub_kubernetes() as stub:
        yield stub


@pytest.fixture
async def managed(seed: StubKubernetes, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Managed]:
    async with a_resource_manager(seed, monkeypatch) as found:
        yield found


@pytest.fixture
async def often(seed: StubKubernetes, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Managed]:
    """A resource manager that syncs at short intervals."""
    async with a_resource_manager(seed, monkeypatch, sync_seconds=0.3) as found:
        yield found


async def is_found(managed: Managed, name: str, expected: tuple[str, str, str], kind: str = "ResourcesApplied") -> None:
    async def found() -> None:
        assert managed.condition(name, kind) == expected

    await eventually(found, every=0.02)


async def is_applied(managed: Managed, name: str) -> None:
    async def applied() -> None:
        status = managed.managed_resource(name).get("status", {})
        assert managed.condition(name) == APPLIED
        assert status["observedGeneration"] == managed.managed_resource(name)["metadata"]["generation"]

    await eventually(applied, every=0.02)


async def is_gone(managed: Managed, kind: str, name: str, namespace: str = "target") -> None:
    async def gone() -> None:
        assert managed.seed.get(kind, namespace, name) is None

    await eventually(gone, every=0.02)


async def has_data(managed: Managed, name: str, value: str) -> None:
    async def there() -> None:
        assert (managed.seed.get("ConfigMap", "target", name) or {}).get("data") == {"a": value}

    await eventually(there, every=0.02)


def a_deployment() -> Document:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "target"},
        "spec": spec,
    }


async def test_objects_are_made_with_labels_and_origin_and_listed_in_the_status(managed: Managed) -> None:
    managed.bundle("first", a_config_map("one"), a_deployment(), injectLabels={"foo": "bar"})
    await is_applied(managed, "first")
    labels = {"foo": "bar", "resources.gardener.cloud/managed-by": "gardener"}
    one, web = managed.seed.get("ConfigMap", "target", "one"), managed.seed.get("Deployment", "target", "web")
    assert one is not None
    assert web is not None
    assert one["metadata"]["labels"] == labels
    assert one["metadata"]["annotations"][ORIGIN] == f"{NAMESPACE}/first"
    assert web["spec"]["template"]["metadata"]["labels"] == {"app": "web", **labels}
    found = managed.managed_resource("first")
    assert found["metadata"]["finalizers"] == [f"{FINALIZER}-seed"]
    assert [(each["kind"], each["name"], each["labels"]) for each in found["status"]["resources"]] == [
        ("ConfigMap", "one", labels),
        ("Deployment", "web", labels),
    ]
    assert len(found["status"]["secretsDataChecksum"]) == 64
    outdated = 'Deployment "target/web" is unhealthy: observed generation outdated (0/1)'
    await is_found(managed, "first", ("False", "DeploymentUnhealthy", outdated), "ResourcesHealthy")
    outdated = 'Deployment "target/web" is progressing: observed generation outdated (0/1)'
    await is_found(managed, "first", ("True", "DeploymentProgressing", outdated), "ResourcesProgressing")


async def test_the_origin_names_the_identity_of_the_seeds_cluster(
    seed: StubKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = {"name": "cluster-identity", "namespace": "kube-system"}
    seed.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"cluster-identity": "seed-1"}})
    async with a_resource_manager(seed, monkeypatch) as managed:
        managed.bundle("first", a_config_map("one"))
        await is_applied(managed, "first")
        one = seed.get("ConfigMap", "target", "one") or {}
        assert one["metadata"]["annotations"][ORIGIN] == f"seed-1:{NAMESPACE}/first"


async def test_a_changed_secret_and_another_secret_are_applied_at_once(managed: Managed) -> None:
    managed.bundle("first", a_config_map("one"))
    await is_applied(managed, "first")
    managed.bundle("first", a_config_map("one", "2"))
    await has_data(managed, "one", "2")
    managed.secret("another", {"objects.yaml": yaml.safe_dump(a_config_map("one", "3"))})
    managed.bundle("first", a_config_map("one", "2"), secretRefs=[{"name": "another"}])
    await has_data(managed, "one", "3")


async def test_what_changes_while_it_is_applied_is_applied_again_at_once(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested, applied = asyncio.Event(), ObjectApplier.apply
    request_pass = ManagedResourceReconciler.request_pass

    def noted(self: ManagedResourceReconciler, name: FullName) -> None:
        request_pass(self, name)
        requested.set()

    async def changed_meanwhile(self: ObjectApplier, objects: Sequence[DesiredObject]) -> None:
        await applied(self, objects)
        if (managed.seed.get("ConfigMap", "target", "one") or {}).get("data") == {"a": "1"}:
            requested.clear()
            managed.bundle("first", a_config_map("one", "2"))
            await requested.wait()

    monkeypatch.setattr(ManagedResourceReconciler, "request_pass", noted)
    monkeypatch.setattr(ObjectApplier, "apply", changed_meanwhile)
    managed.bundle("first", a_config_map("one"))
    await has_data(managed, "one", "2")


async def test_drift_is_put_back_at_the_next_sync_and_labels_of_others_stay(often: Managed) -> None:
    often.bundle("first", a_config_map("one"))
    await is_applied(often, "first")
    often.seed.change(
        "ConfigMap", "target", "one", {"data": {"a": "2", "b": "mine"}, "metadata": {"labels": {"mine": "yes"}}}
    )
    await has_data(often, "one", "1")
    assert (often.seed.get("ConfigMap", "target", "one") or {})["metadata"]["labels"]["mine"] == "yes"


async def test_an_object_that_is_deleted_by_hand_is_missing_and_made_again(managed: Managed) -> None:
    managed.bundle("first", a_config_map("one"))
    await is_found(managed, "first", ("True", "ResourcesHealthy", "All resources are healthy."), "ResourcesHealthy")
    before = managed.seed.get("ConfigMap", "target", "one") or {}
    managed.seed.delete("ConfigMap", "target", "one")
    await has_data(managed, "one", "1")
    after = managed.seed.get("ConfigMap", "target", "one") or {}
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def test_at_rest_nothing_is_requested(often: Managed) -> None:
    often.bundle("first", a_config_map("one"), a_deployment())
    await is_found(often, "first", ("False", "DeploymentUnhealthy", often_message()), "ResourcesHealthy")
    start = 0

    async def at_rest() -> None:
        nonlocal start
        before, start = start, len(often.seed.requests)
        assert before == start

    await eventually(at_rest, every=1.0)  # three syncs without a request


def often_message() -> str:
    return 'Deployment "target/web" is unhealthy: observed generation outdated (0/1)'


async def test_an_ignored_managed_resource_is_left_alone_until_it_is_not(often: Managed) -> None:
    often.bundle("first", a_config_map("one"))
    await is_applied(often, "first")
    ignore = {"metadata": {"annotations": {"resources.gardener.cloud/ignore": "true"}}}
    often.seed.change("ManagedResource", NAMESPACE, "first", ignore)
    message = "ManagedResource is marked to be ignored."
    await is_found(often, "first", ("True", "ManagedResourceIgnored", message))
    assert often.condition("first", "ResourcesProgressing") == ("False", "ManagedResourceIgnored", message)
    often.seed.change("ConfigMap", "target", "one", {"data": {"a": "9"}})
    often.seed.change(
        "ManagedResource", NAMESPACE, "first", {"metadata": {"annotations": {"resources.gardener.cloud/ignore": None}}}
    )
    await has_data(often, "one", "1")
    await is_applied(often, "first")


async def test_an_ignored_object_is_created_and_never_updated(often: Managed) -> None:
    often.bundle("second", a_config_map("loose", annotations={"resources.gardener.cloud/ignore": "true"}))
    await is_applied(often, "second")
    metadata = (often.seed.get("ConfigMap", "target", "loose") or {})["metadata"]
    assert metadata["annotations"] == {"resources.gardener.cloud/ignore": "true"}
    assert "labels" not in metadata
    often.seed.change("ConfigMap", "target", "loose", {"data": {"a": "9"}})
    often.bundle(
        "second", a_config_map("loose", annotations={"resources.gardener.cloud/ignore": "true"}), a_config_map("x")
    )
    await has_data(often, "x", "1")
    assert (often.seed.get("ConfigMap", "target", "loose") or {})["data"] == {"a": "9"}


async def test_mode_ignore_ends_the_management_of_an_object(managed: Managed) -> None:
    managed.bundle("third", a_config_map("kept"))
    await is_applied(managed, "third")
    managed.bundle("third", a_config_map("kept", annotations={"resources.gardener.cloud/mode": "Ignore"}))

    async def released() -> None:
        assert "resources" not in managed.managed_resource("third")["status"]

    await eventually(released, every=0.02)
    metadata = (managed.seed.get("ConfigMap", "target", "kept") or {})["metadata"]
    assert ORIGIN not in metadata.get("annotations", {})
    assert metadata["labels"] == {"resources.gardener.cloud/managed-by": "gardener"}


async def test_an_unknown_kind_is_a_failure_that_leaves_no_generation(managed: Managed) -> None:
    managed.bundle("unknown", {"apiVersion": "nobody.example/v1", "kind": "Thing", "metadata": {"name": "x"}})
    no_match = 'no matches for kind "Thing" in version "nobody.example/v1"'
    message = f'error during apply of object "nobody.example/v1/Thing/default/x": {no_match}'
    await is_found(managed, "unknown", ("False", "ApplyFailed", message))
    assert managed.condition("unknown", "ResourcesHealthy")[:2] == ("Unknown", "ChecksPending")
    assert "observedGeneration" not in managed.managed_resource("unknown")["status"]


async def test_the_first_failure_ends_a_pass(managed: Managed) -> None:
    managed.seed.rejections.append(lambda _method, body: "it is bad" if body["metadata"]["name"] == "b-bad" else None)
    managed.bundle("invalid", a_config_map("c-good"), a_config_map("b-bad"), a_config_map("a-good"))
    message = 'error during apply of object "v1/ConfigMap/target/b-bad": it is bad'
    await is_found(managed, "invalid", ("False", "ApplyFailed", message))
    assert managed.seed.get("ConfigMap", "target", "a-good")
    assert managed.seed.get("ConfigMap", "target", "c-good") is None
    assert "resources" not in managed.managed_resource("invalid")["status"]


async def test_a_missing_secret_is_reported_and_found_once_it_is_there(managed: Managed) -> None:
    managed.seed.put(a_managed_resource("nosecret", **{"class": "seed"}))
    await is_found(managed, "nosecret", ("False", "CannotReadSecret", 'Secret "mr-nosecret" not found'))
    assert [each["type"] for each in managed.managed_resource("nosecret")["status"]["conditions"]] == [
        "ResourcesApplied"
    ]
    managed.bundle("nosecret", a_config_map("one"))
    await is_applied(managed, "nosecret")


async def test_what_decodes_is_applied_and_the_rest_is_named(managed: Managed) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d-good, namespace: target}\n---\n{{{\n"
    managed.secret("mr-garbage", {"objects.yaml": text})
    managed.seed.put(a_managed_resource("garbage", **{"class": "seed"}))

    async def failed() -> None:
        status, reason, message = managed.condition("garbage")
        assert (status, reason) == ("False", "DecodingFailed")
        assert f"index 1 in 'objects.yaml' in secret '{NAMESPACE}/mr-garbage'" in message

    await eventually(failed, every=0.02)
    assert managed.seed.get("ConfigMap", "target", "d-good")
    assert managed.managed_resource("garbage")["status"]["observedGeneration"] == 1


async def test_a_removal_that_hangs_holds_up_what_is_new(managed: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gardenbus.gardenlet.resource_manager.reconciler.PENDING_SECONDS", 0.1)
    managed.bundle("leave", a_config_map("f1"), a_config_map("f2", finalizers=["example.com/hold"]))
    await is_applied(managed, "leave")
    managed.bundle("leave", a_config_map("f3"))
    pending = 'deletion of old resource "v1/ConfigMap/target/f2" is still pending'
    message = f"Could not clean all old resources: 1 error occurred: {pending}"
    await is_found(managed, "leave", ("Progressing", "DeletionPending", message))
    assert managed.seed.get("ConfigMap", "target", "f1") is None
    assert managed.seed.get("ConfigMap", "target", "f3") is None
    managed.seed.change("ConfigMap", "target", "f2", {"metadata": {"finalizers": None}})
    await has_data(managed, "f3", "1")
    await is_applied(managed, "leave")


async def test_objects_that_are_to_be_kept_and_those_of_the_garbage_collector_stay(managed: Managed) -> None:
    kept = a_config_map("kept", annotations={"resources.gardener.cloud/keep-object": "true"})
    hashed = a_config_map("hashed", labels={"resources.gardener.cloud/garbage-collectable-reference": "true"})
    managed.bundle("leave", kept, hashed, a_config_map("gone"))
    await is_applied(managed, "leave")
    managed.bundle("leave")
    await is_gone(managed, "ConfigMap", "gone")
    assert managed.seed.get("ConfigMap", "target", "kept")
    assert managed.seed.get("ConfigMap", "target", "hashed")


async def test_a_deleted_managed_resource_takes_its_objects_along(managed: Managed) -> None:
    managed.bundle("first", a_config_map("one"), a_deployment())
    await is_applied(managed, "first")
    managed.seed.delete("ManagedResource", NAMESPACE, "first")
    await is_gone(managed, "ManagedResource", "first", NAMESPACE)
    assert managed.seed.get("ConfigMap", "target", "one") is None
    assert managed.seed.get("Deployment", "target", "web") is None


async def test_an_ignored_managed_resource_is_deleted_as_any_other(managed: Managed) -> None:
    managed.bundle("first", a_config_map("one"))
    await is_applied(managed, "first")
    ignore = {"metadata": {"annotations": {"resources.gardener.cloud/ignore": "true"}}}
    managed.seed.change("ManagedResource", NAMESPACE, "first", ignore)
    managed.seed.delete("ManagedResource", NAMESPACE, "first")
    await is_gone(managed, "ManagedResource", "first", NAMESPACE)
    assert managed.seed.get("ConfigMap", "target", "one") is None


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_change_during_a_report_is_acted_on_though_its_event_comes_after_the_response(
    managed: Managed, monkeypatch: pytest.MonkeyPatch, *, is_deleted: bool
) -> None:
    seed, patch, reported = managed.seed, SourceCluster.patch, asyncio.Event()

    def changed_by_hand() -> None:
        if is_deleted:
            seed.delete("ManagedResource", NAMESPACE, "first")
        else:
            seed.change("ManagedResource", NAMESPACE, "first", ignore(None))

    async def changed_meanwhile(
        self: SourceCluster, managed_resource: Document, body: Document, *, is_status: bool = False
    ) -> Document | None:
        if "ManagedResourceIgnored" not in str(body):
            return await patch(self, managed_resource, body, is_status=is_status)
        with seed.late_events():
            changed_by_hand()
            after = await patch(self, managed_resource, body, is_status=is_status)
        reported.set()
        return after

    def ignore(value: str | None) -> Document:
        return {"metadata": {"annotations": {"resources.gardener.cloud/ignore": value}}}

    managed.bundle("first", a_config_map("one"))
    await is_applied(managed, "first")
    monkeypatch.setattr(SourceCluster, "patch", changed_meanwhile)
    seed.change("ManagedResource", NAMESPACE, "first", ignore("true"))
    await reported.wait()
    if is_deleted:
        await is_gone(managed, "ManagedResource", "first", NAMESPACE)
    else:
        await is_found(managed, "first", APPLIED)


async def test_keep_objects_leaves_them_when_the_managed_resource_goes(managed: Managed) -> None:
    managed.bundle("keeps", a_config_map("kept2"), keepObjects=True)
    await is_applied(managed, "keeps")
    managed.seed.delete("ManagedResource", NAMESPACE, "keeps")
    await is_gone(managed, "ManagedResource", "keeps", NAMESPACE)
    assert managed.seed.get("ConfigMap", "target", "kept2")


async def test_a_class_that_is_not_served_is_left_alone(managed: Managed) -> None:
    managed.bundle("other", a_config_map("g"), **{"class": "garden"})
    managed.bundle("own", a_config_map("h"))
    await is_applied(managed, "own")
    assert "status" not in managed.managed_resource("other")
    assert "finalizers" not in managed.managed_resource("other")["metadata"]


async def test_another_class_removes_the_objects_of_the_former_one_first(
    seed: StubKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        a_stub_kubernetes() as shoot,
        a_resource_manager(seed, monkeypatch, {("garden-dev", "hermes"): shoot}) as managed,
    ):
        managed.bundle("klass", a_config_map("g"))
        await is_applied(managed, "klass")
        seed.change("ManagedResource", NAMESPACE, "klass", {"spec": {"class": None}})

        async def moved() -> None:
            assert managed.managed_resource("klass")["metadata"]["finalizers"] == [FINALIZER]
            assert seed.get("ConfigMap", "target", "g") is None
            assert shoot.get("ConfigMap", "target", "g")

        await eventually(moved, every=0.02)
        await is_applied(managed, "klass")


async def test_a_hibernated_shoot_holds_its_managed_resources_up_without_a_failure(
    seed: StubKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        a_stub_kubernetes() as shoot,
        a_resource_manager(seed, monkeypatch, {("garden-dev", "hermes"): shoot}, sync_seconds=0.2) as managed,
    ):
        managed.shoots.hibernated.add("hermes")
        managed.bundle("klass", a_config_map("g"), **{"class": "resources"})
        managed.bundle("seeds", a_config_map("h"))
        await is_applied(managed, "seeds")
        assert "status" not in managed.managed_resource("klass")
        managed.shoots.hibernated.clear()
        await is_applied(managed, "klass")
        assert shoot.get("ConfigMap", "target", "g")


async def test_an_invalid_update_deletes_an_object_that_wants_it(managed: Managed) -> None:
    annotations = {"resources.gardener.cloud/delete-on-invalid-update": "true"}
    managed.bundle("first", a_config_map("one", annotations=annotations))
    await is_applied(managed, "first")
    before = (managed.seed.get("ConfigMap", "target", "one") or {})["metadata"]["uid"]
    managed.seed.rejections.append(lambda method, _body: "immutable" if method == "PUT" else None)
    managed.bundle("first", a_config_map("one", "2", annotations=annotations))
    await has_data(managed, "one", "2")
    assert (managed.seed.get("ConfigMap", "target", "one") or {})["metadata"]["uid"] != before


async def test_an_immutable_config_map_is_replaced(managed: Managed) -> None:
    managed.bundle("first", a_config_map("one"))
    await is_applied(managed, "first")
    before = (managed.seed.get("ConfigMap", "target", "one") or {})["metadata"]["uid"]
    message = "data: Forbidden: field is immutable when `immutable` is set"
    managed.seed.rejections.append(lambda method, _body: message if method == "PUT" else None)
    managed.bundle("first", a_config_map("one", "2"))
    await has_data(managed, "one", "2")
    assert (managed.seed.get("ConfigMap", "target", "one") or {})["metadata"]["uid"] != before


async def test_replicas_of_an_autoscaled_deployment_stay(managed: Managed) -> None:
    managed.bundle("first", a_deployment())
    await is_applied(managed, "first")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metadata = {"name": "hpa", "namespace": "target"}
    managed.seed.put(
        {
            "apiVersion": "autoscaling/v1",
            "kind": "HorizontalPodAutoscaler",
            "metadata": metadata,
            "spec": {"scaleTargetRef": target},
        }
    )
    managed.seed.change("Deployment", "target", "web", {"spec": {"replicas": 7}})
    managed.bundle("first", a_deployment(), a_config_map("one"))
    await has_data(managed, "one", "1")
    await is_applied(managed, "first")
    assert (managed.seed.get("Deployment", "target", "web") or {})["spec"]["replicas"] == 7


async def test_a_reconcile_is_requested_by_an_annotation(managed: Managed) -> None:
    managed.bundle("first", a_config_map("one"))
    await is_found(managed, "first", ("True", "ResourcesHealthy", "All resources are healthy."), "ResourcesHealthy")
    managed.seed.change("ConfigMap", "target", "one", {"data": {"a": "2"}})
    operation = {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}}
    managed.seed.change("ManagedResource", NAMESPACE, "first", operation)
    await has_data(managed, "one", "1")
    assert "gardener.cloud/operation" not in managed.managed_resource("first")["metadata"].get("annotations", {})


async def test_an_api_that_comes_back_finds_all_as_it_was(managed: Managed) -> None:
    managed.bundle("first", a_config_map("one"))
    await is_applied(managed, "first")
    before = (managed.seed.get("ConfigMap", "target", "one") or {})["metadata"]["uid"]
    managed.seed.is_away = True
    managed.seed.end_watches()
    await asyncio.sleep(0)
    managed.seed.is_away = False
    managed.bundle("first", a_config_map("one", "2"))
    await has_data(managed, "one", "2")
    assert (managed.seed.get("ConfigMap", "target", "one") or {})["metadata"]["uid"] == before


async def test_volume_claims_go_with_a_stateful_set_where_that_is_wanted(managed: Managed) -> None:
    labels = {"app": "db"}
    spec = {"selector": {"matchLabels": labels}, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    metadata = {"name": "db", "namespace": "target"}
    managed.bundle(
        "first",
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec},
        deletePersistentVolumeClaims=True,
    )
    await is_applied(managed, "first")
    for name, claim_labels in (("data-db-0", labels), ("other", {"app": "x"})):
        claim = {"name": name, "namespace": "target", "labels": claim_labels}
        managed.seed.put({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": claim})
    managed.seed.delete("ManagedResource", NAMESPACE, "first")
    await is_gone(managed, "ManagedResource", "first", NAMESPACE)
    assert managed.seed.get("PersistentVolumeClaim", "target", "data-db-0") is None
    assert managed.seed.get("PersistentVolumeClaim", "target", "other")


async def test_finalizers_are_taken_off_after_the_grace_period_of_an_object(managed: Managed) -> None:
    annotations = {"resources.gardener.cloud/finalize-deletion-after": "1h"}
    managed.bundle("first", a_config_map("stuck", annotations=annotations))
    await is_applied(managed, "first")
    managed.seed.change("ConfigMap", "target", "stuck", {"metadata": HOLD})
    managed.seed.delete("ManagedResource", NAMESPACE, "first")  # the stub's deletions are in the past
    await is_gone(managed, "ConfigMap", "stuck")


async def test_the_definition_is_created_where_it_is_missing(managed: Managed) -> None:
    async def created() -> None:
        assert managed.seed.get("CustomResourceDefinition", "", "managedresources.resources.gardener.cloud")

    await eventually(created, every=0.02)


ACCOUNT = "serviceaccount.resources.gardener.cloud"
TOKEN_LABELS = {"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}


def a_token_secret(**annotations: str) -> Document:
    named = {f"{ACCOUNT}/name": "me", f"{ACCOUNT}/namespace": "kube-system"}
    metadata = {
        "name": "access",
        "namespace": NAMESPACE,
        "labels": TOKEN_LABELS,
        "annotations": {**named, **annotations},
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


async def test_a_token_of_the_shoot_is_put_into_the_secret_of_the_seed(
    seed: StubKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed.put(a_token_secret())
    async with (
        a_stub_kubernetes() as shoot,
        a_resource_manager(seed, monkeypatch, {("garden-dev", "hermes"): shoot}),
    ):

        async def filled() -> str:
            secret = seed.get("Secret", NAMESPACE, "access") or {}
            assert f"{ACCOUNT}/token-renew-timestamp" in secret["metadata"]["annotations"]
            return str(secret["data"]["token"])

        token = await eventually(filled, every=0.02)
        account = shoot.get("ServiceAccount", "kube-system", "me") or {}
        assert account["automountServiceAccountToken"] is False
        shoot.rejects_tokens = True
        seed.change("Secret", NAMESPACE, "access", {"metadata": {"annotations": {"seen": "again"}}})

        async def renewed() -> None:
            assert await filled() != token

        await eventually(renewed, every=0.02)


async def test_a_token_goes_into_a_secret_of_the_shoot_where_one_is_named(
    seed: StubKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = "token-requestor.resources.gardener.cloud/target-secret"
    seed.put(a_token_secret(**{f"{target}-name": "there", f"{target}-namespace": "kube-system"}))
    async with (
        a_stub_kubernetes() as shoot,
        a_resource_manager(seed, monkeypatch, {("garden-dev", "hermes"): shoot}),
    ):

        async def filled() -> None:
            assert (shoot.get("Secret", "kube-system", "there") or {})["data"]["token"]
            assert "token" not in (seed.get("Secret", NAMESPACE, "access") or {}).get("data", {})

        await eventually(filled, every=0.02)


async def test_garbage_is_collected_and_what_is_referred_to_stays(
    seed: StubKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = {"resources.gardener.cloud/garbage-collectable-reference": "true"}
    for name in ("used", "unused"):
        seed.put(a_config_map(name, labels=labels))
    key = "reference.resources.gardener.cloud/configmap-12345678"
    seed.put({**a_deployment(), "metadata": {"name": "own", "namespace": "target", "annotations": {key: "used"}}})
    async with a_resource_manager(seed, monkeypatch) as managed:
        await is_gone(managed, "ConfigMap", "unused")
        assert seed.get("ConfigMap", "target", "used")


async def test_a_shoot_that_falls_asleep_leaves_its_managed_resources_as_they_were(
    seed: StubKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    shoots = {("garden-dev", "hermes"): StubKubernetes()}
    async with a_stub_kubernetes() as shoot:
        shoots[("garden-dev", "hermes")] = shoot
        async with a_resource_manager(seed, monkeypatch, shoots, sync_seconds=0.2) as managed:
            managed.bundle("first", a_config_map("one"), **{"class": "resources"})
            await is_applied(managed, "first")
            shoot.is_away = True
            shoot.end_watches()
            managed.shoots.hibernated.add("hermes")
            managed.bundle("first", a_config_map("one", "2"), **{"class": "resources"})
            managed.bundle("seeds", a_config_map("h"))
            await is_applied(managed, "seeds")
            await is_applied(managed, "first")
            shoot.is_away = False
            managed.shoots.hibernated.clear()

            async def applied_again() -> None:
                assert (shoot.get("ConfigMap", "target", "one") or {})["data"] == {"a": "2"}

            await eventually(applied_again, every=0.02)


async def test_a_shoot_whose_api_is_away_is_reported_and_applied_when_it_is_back(
    seed: StubKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        a_stub_kubernetes() as shoot,
        a_resource_manager(seed, monkeypatch, {("garden-dev", "hermes"): shoot}, sync_seconds=0.2) as managed,
    ):
        managed.bundle("first", a_config_map("one"), **{"class": "resources"})
        await is_applied(managed, "first")
        shoot.is_away = True
        managed.bundle("first", a_config_map("one", "2"), **{"class": "resources"})

        async def failed() -> None:
            status, reason, message = managed.condition("first")
            assert (status, reason) == ("False", "ApplyFailed")
            assert "away" in message

        await eventually(failed, every=0.02)
        shoot.is_away = False
        await is_applied(managed, "first")
        assert (shoot.get("ConfigMap", "target", "one") or {})["data"] == {"a": "2"}
