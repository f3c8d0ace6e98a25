"""Member clusters and placements, as people write them."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver

WEB = ObjectKey("clusterresourceplacement", "", "web")
PLACEMENT = "placement.kubernetes-fleet.io/v1beta1"
TOLERATION = {"key": "gpu", "operator": "Exists"}


def a_placement(**policy: Any) -> Document:
    return {
        "apiVersion": PLACEMENT,
        "kind": "ClusterResourcePlacement",
        "metadata": {"name": "web"},
        "spec": {
            "resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "team"}],
            **({"policy": policy} if policy else {}),
        },
    }


async def test_a_placement_is_stored_with_its_defaults_and_changed_within_its_rules(apiserver: Apiserver) -> None:
    made = await apiserver.request("apply", a_placement(placementType="PickN", numberOfClusters=2))
    assert made["spec"]["revisionHistoryLimit"] == 10
    assert made["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == "25%"
    assert made["metadata"]["generation"] == 1

    same = await apiserver.response("apply", a_placement(placementType="PickN", numberOfClusters=2))
    assert same["outcome"] == "unchanged"
    more = a_placement(placementType="PickN", numberOfClusters=3, tolerations=[TOLERATION])
    assert (await apiserver.request("apply", more))["metadata"]["generation"] == 2
    fewer = await apiserver.rejection("apply", a_placement(placementType="PickN", numberOfClusters=3))
    other = await apiserver.rejection("patch.crp._.web", {"spec": {"policy": {"placementType": "PickAll"}}})
    assert [detail["field"] for detail in fewer["details"]] == ["spec.policy.tolerations"]
    assert "spec.policy.placementType" in {detail["field"] for detail in other["details"]}


async def test_what_the_services_reported_is_no_obstacle(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_placement())
    stored = await apiserver.now(WEB)
    condition = {
        "type": "ClusterResourcePlacementScheduled",
        "status": "Unknown",
        "reason": "SchedulePending",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    document = stored.document()
    document["metadata"]["finalizers"] = ["kubernetes-fleet.io/crp-cleanup"]
    await apiserver.kit.store.update(stored, {**document, "status": {"conditions": [condition]}})

    changed = await apiserver.request(
        "apply", {**a_placement(), "spec": {**a_placement()["spec"], "revisionHistoryLimit": 3}}
    )
    assert changed["status"]["conditions"] == [condition]
    assert changed["metadata"]["finalizers"] == ["kubernetes-fleet.io/crp-cleanup"]


async def test_a_refused_placement_names_its_fields(apiserver: Apiserver) -> None:
    rejection = await apiserver.rejection("apply", a_placement(placementType="PickFixed", numberOfClusters=1))
    assert rejection["code"] == 422
    assert {detail["field"] for detail in rejection["details"]} == {
        "spec.policy.clusterNames",
        "spec.policy.numberOfClusters",
    }


async def test_a_budget_is_held_against_its_placement(apiserver: Apiserver) -> None:
    budget: Document = {
        "apiVersion": PLACEMENT,
        "kind": "ClusterResourcePlacementDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1},
    }
    await apiserver.request("apply", a_placement())
    assert "write minAvailable as a number" in (await apiserver.rejection("apply", budget))["message"]
    await apiserver.request("apply", {**budget, "spec": {"minAvailable": 1}})


@pytest.mark.parametrize(
    ("api_version", "kind", "namespace", "content"),
    [
        ("apps/v1", "Deployment", "team", {"spec": {"replicas": 2}}),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "", {"rules": [{"verbs": ["get"]}]}),
        ("batch/v1", "CronJob", "team", {"spec": {"schedule": "* * * * *"}}),
    ],
)
async def test_what_placements_take_along_is_kept_as_it_is(
    apiserver: Apiserver, api_version: str, kind: str, namespace: str, content: Document
) -> None:
    metadata = {"name": "web", **({"namespace": namespace} if namespace else {})}
    await apiserver.request("apply", {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content})
    stored = await apiserver.request(f"get.{ObjectKey(kind.lower(), namespace, 'web').tail}")
    assert {name: stored[name] for name in content} == content
    assert (stored["apiVersion"], stored["kind"]) == (api_version, kind)


async def test_a_new_member_cluster_gets_what_it_leaves_out(apiserver: Apiserver) -> None:
    cluster = {
        "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
        "kind": "MemberCluster",
        "metadata": {"name": "east"},
    }
    assert (await apiserver.request("apply", cluster))["spec"] == {"heartbeatPeriodSeconds": 60}
    rejection = await apiserver.rejection(
        "apply", {**cluster, "spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}
    )
    assert [detail["field"] for detail in rejection["details"]] == ["spec.taints[0].effect"]
