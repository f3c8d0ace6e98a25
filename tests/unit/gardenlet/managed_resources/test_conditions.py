"""Conditions of ManagedResources, the classes they belong to, and the garbage they leave."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.ports.clock import timestamp
from gardenbus.gardenlet.domain.managed_resources import conditions as found
from gardenbus.gardenlet.domain.managed_resources.garbage import (
    Collectable,
    collectable_of,
    garbage,
    is_collectable,
)
from gardenbus.gardenlet.domain.managed_resources.names import (
    class_of,
    finalizer_of,
    first_manager_finalizer,
    is_ignored,
    origin_of,
    owner_by_origin,
)
from gardenbus.gardenlet.domain.managed_resources.references import ResourceReference, listed_references

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ONE = ResourceReference("v1", "ConfigMap", "target", "one")
WEB = ResourceReference("apps/v1", "Deployment", "target", "web")


def a_managed_resource(*conditions: Document) -> Document:
    return {"metadata": {"name": "first", "namespace": "ns"}, "status": {"conditions": list(conditions)}}


def test_a_new_set_of_objects_begins_with_unknown_checks() -> None:
    conditions = found.with_findings(a_managed_resource(), found.begun(a_managed_resource()), "now")
    assert [(each["type"], each["status"], each["reason"]) for each in conditions] == [
        ("ResourcesHealthy", "Unknown", "ChecksPending"),
        ("ResourcesProgressing", "Unknown", "ChecksPending"),
        ("ResourcesApplied", "Progressing", "ApplyProgressing"),
    ]
    assert conditions[0]["message"].startswith("The health checks have not yet been executed for the current set")
    assert conditions[1]["message"].startswith("Checks have not yet been executed for the current set")
    assert not found.are_checked(conditions)


@pytest.mark.parametrize("reason", ["ApplyFailed", "DeletionFailed", "DeletionPending"])
def test_a_failure_is_reported_during_the_next_attempt(reason: str) -> None:
    failed = {"type": "ResourcesApplied", "status": "False", "reason": reason, "message": "why"}
    applied = found.begun(a_managed_resource(failed))[-1]
    assert (applied.status, applied.reason, applied.message) == ("Progressing", reason, "why")


def test_checks_begin_when_all_is_applied() -> None:
    conditions = found.with_findings(a_managed_resource(), [found.applied()], "now")
    assert found.are_checked(conditions)
    assert conditions[0]["message"] == "All resources are applied."


def test_messages_of_health_and_progress_name_the_object() -> None:
    assert found.missing(ONE) == (
        "ResourcesHealthy",
        "False",
        "ConfigMapMissing",
        'Required ConfigMap "one" in namespace "target" is missing',
    )
    outdated = "observed generation outdated (0/1)"
    assert found.unhealthy(WEB, outdated)[2:] == (
        "DeploymentUnhealthy",
        f'Deployment "target/web" is unhealthy: {outdated}',
    )
    assert found.progressing(WEB, outdated)[2:] == (
        "DeploymentProgressing",
        f'Deployment "target/web" is progressing: {outdated}',
    )


def test_the_message_of_a_removal_counts_its_problems() -> None:
    one = 'deletion of old resource "v1/ConfigMap/target/f2" is still pending'
    assert found.removal_message([one]) == f"Could not clean all old resources: 1 error occurred: {one}"
    assert found.removal_message([one, "b"]) == f"Could not clean all old resources: 2 errors occurred: [{one}, b]"


def test_a_deletion_that_goes_on_keeps_its_message() -> None:
    assert found.deletion_begun(a_managed_resource())[-1].message == "The resources are currently being deleted."
    pending = {"type": "ResourcesApplied", "status": "Progressing", "reason": "DeletionPending", "message": "f2"}
    assert found.deletion_begun(a_managed_resource(pending))[-1].message == "f2"


def test_an_ignored_managed_resource_counts_as_well() -> None:
    assert [(each.status, each.reason) for each in found.ignored()] == [
        ("True", "ManagedResourceIgnored"),
        ("True", "ManagedResourceIgnored"),
        ("False", "ManagedResourceIgnored"),
    ]


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("1", True), ("T", True), ("yes", False), ("", False)])
def test_ignore_is_read_as_go_reads_booleans(value: str, expected: bool) -> None:
    assert is_ignored({"metadata": {"annotations": {"resources.gardener.cloud/ignore": value}}}) is expected


def test_classes_have_finalizers_of_their_own() -> None:
    assert [class_of({"spec": spec}) for spec in ({}, {"class": ""}, {"class": "resources"}, {"class": "seed"})] == [
        "",
        "",
        "",
        "seed",
    ]
    assert finalizer_of("") == "resources.gardener.cloud/gardener-resource-manager"
    assert finalizer_of("seed") == "resources.gardener.cloud/gardener-resource-manager-seed"
    assert first_manager_finalizer(["other", finalizer_of("seed"), finalizer_of("")]) == finalizer_of("seed")
    assert first_manager_finalizer(["other"]) is None


def test_an_origin_leads_back_to_its_managed_resource_in_the_same_cluster() -> None:
    assert origin_of("", "ns", "mr") == "ns/mr"
    assert origin_of("seed-1", "ns", "mr") == "seed-1:ns/mr"

    def live(origin: str) -> Document:
        return {"metadata": {"annotations": {"resources.gardener.cloud/origin": origin}}}

    assert owner_by_origin(live("seed-1:ns/mr"), "seed-1") == ("ns", "mr")
    assert owner_by_origin(live("ns/mr"), "") == ("ns", "mr")
    assert owner_by_origin(live("seed-2:ns/mr"), "seed-1") is None
    assert owner_by_origin({"metadata": {}}, "") is None


def test_references_of_a_status_are_read_back() -> None:
    assert listed_references({"status": {"resources": [ONE.document, "nonsense"]}}) == [ONE]


def a_secret(name: str, age: timedelta, namespace: str = "ns") -> Document:
    return {
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": timestamp(NOW - age)},
    }


def test_only_what_is_old_may_be_garbage() -> None:
    assert collectable_of("Secret", a_secret("new", timedelta(minutes=9)), NOW) is None
    assert collectable_of("Secret", a_secret("old", timedelta(minutes=11)), NOW) == Collectable("secret", "ns", "old")
    assert collectable_of("Secret", {"metadata": {"name": "x"}}, NOW) is None


def a_reference(name: str, namespace: str = "ns", *, kind: str = "secret") -> Document:
    hashed = hashlib.sha256(name.encode()).hexdigest()[:8]
    key = f"reference.resources.gardener.cloud/{kind}-{hashed}"
    return {"kind": "Deployment", "metadata": {"namespace": namespace, "annotations": {key: name, "other": "x"}}}


def test_a_reference_of_the_same_namespace_and_kind_keeps_an_object() -> None:
    used = Collectable("secret", "ns", "used")
    assert garbage([used], [a_reference("used")]) == []
    assert garbage([used], [a_reference("used", "elsewhere")]) == [used]
    assert garbage([used], [a_reference("used", kind="configmap")]) == [used]


@pytest.mark.parametrize("suffix", ["secret", "secret-1-2", "-"])
def test_an_annotation_of_another_form_refers_to_nothing(suffix: str) -> None:
    key = f"reference.resources.gardener.cloud/{suffix}"
    unused = Collectable("secret", "ns", "a")
    assert garbage([unused], [{"metadata": {"namespace": "ns", "annotations": {key: "a"}}}]) == [unused]


def test_the_garbage_collector_has_labelled_config_maps_and_secrets_to_itself() -> None:
    labels = {"resources.gardener.cloud/garbage-collectable-reference": "true"}
    assert is_collectable("v1", {"kind": "ConfigMap", "metadata": {"labels": labels}})
    assert not is_collectable("v1", {"kind": "Service", "metadata": {"labels": labels}})
    assert not is_collectable("v1", {"kind": "Secret", "metadata": {}})
