"""Manifests are merged into what the cluster has as Gardener merges them."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.document import Document
from gardenbus.gardenlet.domain.managed_resources.merging import (
    MergeOptions,
    merged,
    released,
    without_description,
)
from gardenbus.gardenlet.domain.managed_resources.references import reference_of

DESCRIPTION = "resources.gardener.cloud/description"
ORIGIN = "resources.gardener.cloud/origin"
OPTIONS = MergeOptions("ns/mr")
OWN = {
    DESCRIPTION: "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n"
    "Any modifications are discarded and the resource is returned to the original state.",
    ORIGIN: "ns/mr",
}


def an_object(kind: str = "ConfigMap", api_version: str = "v1", **fields: Any) -> Document:
    metadata = {"name": "x", "namespace": "ns", **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def live_of(manifest: Document, **changes: Any) -> Document:
    """What the cluster made of a manifest."""
    live = copy.deepcopy(manifest)
    live["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {**live, **changes}


def a_workload(kind: str, **spec: Any) -> Document:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    return an_object(kind, "apps/v1", spec={"template": template, **spec})


def test_a_new_object_is_the_manifest_with_description_and_origin() -> None:
    manifest = an_object(data={"a": "1"}, metadata={"labels": {"l": "1"}, "annotations": {"b": "2"}})
    expected = copy.deepcopy(manifest)
    expected["metadata"]["annotations"] |= OWN
    assert merged(None, manifest, OPTIONS) == expected


def test_data_comes_from_the_manifest_and_metadata_of_the_cluster_stays() -> None:
    manifest = an_object(data={"a": "1"})
    live = live_of(manifest, data={"a": "2", "b": "mine"}, status={"phase": "there"})
    live["metadata"]["finalizers"] = ["example.com/hold"]
    new = merged(live, manifest, OPTIONS)
    assert new["data"] == {"a": "1"}
    assert new["status"] == {"phase": "there"}
    assert new["metadata"]["uid"] == "u"
    assert new["metadata"]["finalizers"] == ["example.com/hold"]


def test_the_status_of_a_manifest_is_not_written() -> None:
    manifest = an_object(status={"made": "up"})
    assert "status" not in merged(live_of(an_object()), manifest, OPTIONS)


def test_labels_of_others_stay_and_those_that_left_the_manifest_go() -> None:
    before = reference_of(an_object(metadata={"labels": {"gone": "1", "changed": "1"}, "annotations": {"gone": "1"}}))
    live = live_of(
        an_object(metadata={"labels": {"gone": "1", "changed": "2", "mine": "3"}, "annotations": {"gone": "1"}})
    )
    new = merged(live, an_object(metadata={"labels": {"new": "1"}}), MergeOptions("ns/mr", before))
    assert new["metadata"]["labels"] == {"changed": "2", "mine": "3", "new": "1"}
    assert new["metadata"]["annotations"] == OWN


def test_forced_labels_and_annotations_are_the_manifests_alone() -> None:
    live = live_of(an_object(metadata={"labels": {"mine": "1"}, "annotations": {"mine": "1"}}))
    options = MergeOptions("ns/mr", force_labels=True, force_annotations=True)
    new = merged(live, an_object(metadata={"labels": {"l": "1"}, "annotations": {"a": "1"}}), options)
    assert new["metadata"]["labels"] == {"l": "1"}
    assert new["metadata"]["annotations"] == {"a": "1", **OWN}


def test_references_that_the_manifest_does_not_have_are_dropped() -> None:
    annotations = {"reference.resources.gardener.cloud/secret-1234abcd": "old", "mine": "1"}
    new = merged(live_of(an_object(metadata={"annotations": annotations})), an_object(), OPTIONS)
    assert new["metadata"]["annotations"] == {"mine": "1", **OWN}


def test_owner_references_are_those_of_the_manifest() -> None:
    owner = [{"kind": "Seed", "name": "x", "uid": "1", "apiVersion": "v1"}]
    live = live_of(an_object(metadata={"ownerReferences": owner}))
    assert "ownerReferences" not in merged(live, an_object(), OPTIONS)["metadata"]
    manifest = an_object(metadata={"ownerReferences": owner})
    assert merged(live_of(an_object()), manifest, OPTIONS)["metadata"]["ownerReferences"] == owner


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_replicas_stay_where_somebody_else_decides_on_them(kind: str) -> None:
    manifest, live = a_workload(kind, replicas=2), live_of(a_workload(kind, replicas=5))
    assert merged(live, manifest, OPTIONS)["spec"]["replicas"] == 2
    assert merged(live, a_workload(kind), OPTIONS)["spec"]["replicas"] == 5
    assert merged(live, manifest, MergeOptions("ns/mr", keeps_replicas=True))["spec"]["replicas"] == 5
    preserving = copy.deepcopy(manifest)
    preserving["metadata"]["annotations"] = {"resources.gardener.cloud/preserve-replicas": "true"}
    assert merged(live, preserving, OPTIONS)["spec"]["replicas"] == 5
    preserving["metadata"]["annotations"] = {"resources.gardener.cloud/preserve-replicas": "True"}
    assert merged(live, preserving, OPTIONS)["spec"]["replicas"] == 2


def test_zero_replicas_are_kept() -> None:
    assert (
        merged(live_of(a_workload("Deployment", replicas=0)), a_workload("Deployment"), OPTIONS)["spec"]["replicas"]
        == 0
    )


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_a_restart_by_hand_stays(kind: str) -> None:
    live = live_of(a_workload(kind))
    live["spec"]["template"]["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "now", "other": "1"}
    template = merged(live, a_workload(kind), OPTIONS)["spec"]["template"]
    assert template["metadata"]["annotations"] == {"kubectl.kubernetes.io/restartedAt": "now"}


def test_amounts_stay_when_they_are_to_be_preserved() -> None:
    live = live_of(a_workload("Deployment"))
    amounts = {"requests": {"cpu": "2", "memory": "1Gi", "example.com/gpu": "1"}, "limits": {"cpu": "4"}}
    live["spec"]["template"]["spec"]["containers"] = [{"name": "web", "resources": amounts}]
    manifest = a_workload("Deployment")
    manifest["spec"]["template"]["spec"]["containers"].append({"name": "other"})
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "storage": "1"}}
    assert merged(live, manifest, OPTIONS)["spec"] == manifest["spec"]
    manifest["metadata"]["annotations"] = {"resources.gardener.cloud/preserve-resources": "true"}
    web, other = merged(live, manifest, OPTIONS)["spec"]["template"]["spec"]["containers"]
    assert web["resources"] == {"requests": {"cpu": "2", "memory": "1Gi", "storage": "1"}, "limits": {"cpu": "4"}}
    assert other == {"name": "other"}


def test_volume_claims_of_a_stateful_set_are_those_it_was_created_with() -> None:
    claims = [{"metadata": {"name": "data"}}]
    manifest = a_workload("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "another"}}])
    live = live_of(a_workload("StatefulSet", volumeClaimTemplates=claims))
    assert merged(live, manifest, OPTIONS)["spec"]["volumeClaimTemplates"] == claims
    assert merged(None, manifest, OPTIONS)["spec"] == manifest["spec"]


def test_a_job_keeps_its_selector_and_the_labels_of_its_pods() -> None:
    manifest = an_object("Job", "batch/v1", spec={"template": {"metadata": {"labels": {"a": "1"}}}})
    live = live_of(manifest)
    live["spec"] = {
        "selector": {"matchLabels": {"controller-uid": "u"}},
        "template": {"metadata": {"labels": {"a": "0", "controller-uid": "u"}}},
    }
    spec = merged(live, manifest, OPTIONS)["spec"]
    assert spec["selector"] == {"matchLabels": {"controller-uid": "u"}}
    assert spec["template"]["metadata"]["labels"] == {"a": "1", "controller-uid": "u"}


def a_service(**spec: Any) -> Document:
    return an_object("Service", spec=spec)


def test_a_service_keeps_its_address() -> None:
    live = live_of(a_service(clusterIP="10.0.0.1", ports=[{"port": 80}]))
    assert merged(live, a_service(ports=[{"port": 80}]), OPTIONS)["spec"]["clusterIP"] == "10.0.0.1"
    assert merged(live, a_service(clusterIP="None"), OPTIONS)["spec"]["clusterIP"] == "None"
    assert "clusterIP" not in merged(live, a_service(type="ExternalName", externalName="x.y"), OPTIONS)["spec"]
    external = live_of(a_service(type="ExternalName", clusterIP=""))
    assert merged(external, a_service(clusterIP="10.0.0.2"), OPTIONS)["spec"]["clusterIP"] == "10.0.0.2"


def test_a_service_keeps_its_node_ports_and_what_its_load_balancer_has_set() -> None:
    old_ports = [{"port": 80, "name": "http", "nodePort": 30080}, {"port": 8443, "name": "tls", "nodePort": 30443}]
    live = live_of(
        a_service(
            type="LoadBalancer",
            ports=old_ports,
            loadBalancerIP="1.2.3.4",
            externalTrafficPolicy="Local",
            healthCheckNodePort=31000,
        )
    )
    live["metadata"]["annotations"] = {"loadbalancer.openstack.org/load-balancer-id": "7", "mine": "1"}
    new_ports = [{"port": 80, "name": "web"}, {"port": 443, "name": "tls"}, {"port": 1, "name": "x", "nodePort": 30001}]
    manifest = a_service(
        type="LoadBalancer", ports=[*new_ports, {"port": 2, "name": "y"}], externalTrafficPolicy="Local"
    )
    new = merged(live, manifest, MergeOptions("ns/mr", force_annotations=True))
    assert [each.get("nodePort") for each in new["spec"]["ports"]] == [30080, 30443, 30001, None]
    assert new["spec"]["loadBalancerIP"] == "1.2.3.4"
    assert new["spec"]["healthCheckNodePort"] == 31000
    assert new["metadata"]["annotations"] == {"loadbalancer.openstack.org/load-balancer-id": "7", **OWN}


def test_a_service_account_keeps_its_secrets() -> None:
    live = live_of(an_object("ServiceAccount", secrets=[{"name": "token"}], imagePullSecrets=[{"name": "pull"}]))
    new = merged(live, an_object("ServiceAccount", secrets=[{"name": "own"}]), OPTIONS)
    assert (new["secrets"], new["imagePullSecrets"]) == ([{"name": "token"}], [{"name": "pull"}])


def test_a_kind_of_the_same_name_in_another_group_is_replaced() -> None:
    manifest = an_object("Service", "serving.knative.dev/v1", spec={"template": {}})
    live = live_of(an_object("Service", "serving.knative.dev/v1", spec={"clusterIP": "x", "template": {}}))
    assert merged(live, manifest, OPTIONS)["spec"] == {"template": {}}


def test_an_ignored_object_is_created_without_a_description() -> None:
    manifest = an_object(metadata={"annotations": {DESCRIPTION: "x", "mine": "1"}})
    assert without_description(manifest)["metadata"]["annotations"] == {"mine": "1"}


def test_only_an_object_of_the_same_origin_is_released() -> None:
    live = an_object(metadata={"annotations": dict(OWN)})
    assert released(live, "ns/mr") == {"metadata": {"annotations": {ORIGIN: None, DESCRIPTION: None}}}
    assert released(live, "ns/another") is None


VALUES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xy"), max_size=4)
KINDS = st.sampled_from([("v1", "ConfigMap"), ("v1", "Service"), ("apps/v1", "Deployment"), ("batch/v1", "Job")])


@given(kind=KINDS, wanted=VALUES, live_labels=VALUES, before=VALUES)
def test_merging_again_changes_nothing_and_leaves_its_arguments_alone(
    kind: tuple[str, str], wanted: dict[str, str], live_labels: dict[str, str], before: dict[str, str]
) -> None:
    manifest = an_object(kind[1], kind[0], metadata={"labels": wanted}, spec={"a": 1})
    live = live_of(an_object(kind[1], kind[0], metadata={"labels": live_labels}, spec={"b": 2, "clusterIP": "1"}))
    options = MergeOptions("ns/mr", reference_of(an_object(metadata={"labels": before})))
    copies = copy.deepcopy((live, manifest))
    once = merged(live, manifest, options)
    assert merged(once, manifest, options._replace(before=reference_of(manifest))) == once
    assert (live, manifest) == copies
    assert wanted.items() <= once["metadata"].get("labels", {}).items()
