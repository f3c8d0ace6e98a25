"""Envelopes are carried as what is in them."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.envelopes import manifests_in, reference
from gardenbus.common.api.fleet.works import Work
from gardenbus.common.errors import InvalidResource
from gardenbus.placement.domain.resource_selectors import is_propagated
from gardenbus.placement.domain.works import with_progress, works_of
from tests.support.builders import merged

NOW = "2026-01-01T00:00:00Z"
GROUP = "placement.kubernetes-fleet.io/v1beta1"
ROLE: Document = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}}
QUOTA: Document = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "shop"}}
WEBHOOK: Document = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "strict"},
}


def a_cluster_envelope(**data: Any) -> Document:
    metadata = {"name": "rules"}
    return {"apiVersion": GROUP, "kind": "ClusterResourceEnvelope", "metadata": metadata, "data": data}


def an_envelope(**data: Any) -> Document:
    metadata = {"name": "limits", "namespace": "shop"}
    return {"apiVersion": GROUP, "kind": "ResourceEnvelope", "metadata": metadata, "data": data}


def a_binding() -> Document:
    return {
        "apiVersion": GROUP,
        "kind": "ClusterResourceBinding",
        "metadata": {"name": "shop-1", "uid": "u1", "labels": {"kubernetes-fleet.io/parent-CRP": "shop"}},
        "spec": {"targetCluster": "lisbon", "resourceSnapshotName": "shop-0-snapshot"},
    }


def a_part(*resources: Document) -> Document:
    return {"metadata": {"name": "shop-0-snapshot"}, "spec": {"selectedResources": list(resources)}}


def test_an_envelope_becomes_a_work_of_its_own() -> None:
    namespace: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    part = a_part(namespace, an_envelope(quota=QUOTA), a_cluster_envelope(hook=WEBHOOK, role=ROLE))
    own, limits, rules = works_of(a_binding(), [part])
    assert [each["kind"] for each in own["spec"]["workload"]["manifests"]] == ["Namespace"]
    assert limits["spec"]["workload"]["manifests"] == [QUOTA]
    assert rules["spec"]["workload"]["manifests"] == [WEBHOOK, ROLE]
    assert len({work["metadata"]["name"] for work in (own, limits, rules)}) == 3
    assert reference(section(limits, "metadata", "labels")) == {
        "type": "ResourceEnvelope",
        "name": "limits",
        "namespace": "shop",
    }
    assert reference(section(own, "metadata", "labels")) is None
    assert works_of(a_binding(), [part]) == [own, limits, rules]


def test_envelopes_go_out_and_what_else_is_kubefleets_does_not() -> None:
    assert is_propagated(an_envelope(quota=QUOTA))
    assert not is_propagated(merged(an_envelope(), {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
    assert not is_propagated({"apiVersion": GROUP, "kind": "Work", "metadata": {"name": "w"}})


@pytest.mark.parametrize(
    ("envelope", "problem"),
    [
        (an_envelope(), "must hold manifests"),
        (an_envelope(role=ROLE), "data.role: metadata.namespace must be 'shop'"),
        (an_envelope(other=merged(QUOTA, {"metadata": {"namespace": "other"}})), "that of the envelope"),
        (a_cluster_envelope(quota=QUOTA), "put it into a ResourceEnvelope"),
        (
            a_cluster_envelope(map={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}),
            "put it into a ResourceEnvelope",
        ),
        (an_envelope(text="kind: Quota"), "data.text: must be a manifest"),
        (an_envelope(nothing={"kind": "ConfigMap"}), "needs apiVersion, kind and metadata.name"),
        (a_cluster_envelope(inner=a_cluster_envelope(role=ROLE)), "is an envelope itself"),
    ],
)
def test_what_is_out_of_place_is_named(envelope: Document, problem: str) -> None:
    with pytest.raises(InvalidResource) as raised:
        validate(envelope, None)
    assert any(problem in f"{each.field}: {each.message}" for each in raised.value.problems), raised.value.problems
    if envelope["data"]:
        with pytest.raises(ValueError, match="data"):
            manifests_in(envelope)


def test_a_good_envelope_is_valid() -> None:
    validate(an_envelope(quota=QUOTA), None)
    validate(a_cluster_envelope(role=ROLE), None)


def a_work_with(**manifest: Any) -> Work:
    identifier = {"ordinal": 0, "version": "v1", "kind": "ResourceQuota", "namespace": "shop", "name": "few"}
    (work,) = works_of(a_binding(), [a_part(an_envelope(quota=QUOTA))])
    conditions = [{"type": "Applied", "status": "False", "reason": "FoundDrifts", "observedGeneration": 1}]
    status = {"conditions": conditions, "manifestConditions": [{"identifier": identifier, **manifest}]}
    return Work.from_document({**work, "metadata": {**work["metadata"], "generation": 1}, "status": status})


def test_drifts_and_failures_name_the_envelope_that_they_came_in() -> None:
    details = {"observationTime": NOW, "observedDrifts": [{"path": "/spec/hard/pods", "valueInMember": "9"}]}
    failed = {"type": "Applied", "status": "False", "reason": "FoundDrifts", "lastTransitionTime": NOW}
    work = a_work_with(conditions=[failed], driftDetails=details)
    status = with_progress(a_binding(), [work], NOW, written=False)["status"]
    envelope = {"type": "ResourceEnvelope", "name": "limits", "namespace": "shop"}
    (drifted,) = status["driftedPlacements"]
    assert drifted["envelope"] == status["failedPlacements"][0]["envelope"] == envelope
    assert drifted["observedDrifts"] == details["observedDrifts"]
    assert "diffedPlacements" not in status
    calm = with_progress({**a_binding(), "status": status}, [], NOW, written=False)["status"]
    assert set(calm) == {"conditions"}
