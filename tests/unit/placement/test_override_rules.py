"""Which overrides apply to a placement on a cluster, and what they make of its manifests."""

import copy
from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.overrides import AppliedOverrides, NamespacedName, resource_ids
from gardenbus.common.api.keys import ObjectKey
from gardenbus.placement.domain.overrides import OverrideFailed, TargetCluster, applicable, is_for, overridden, relevant
from tests.support.overrides import a_cro, an_ro, for_clusters, nothing_for, snapshot, to, without
from tests.support.placements import WEB, a_configmap, a_namespace

EAST = TargetCluster("east-1", {"region": "east", "kube-fleet.io/zone": "a"})
WEST = TargetCluster("west-1", {"region": "west"})
ROLE: Document = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}}
RESOURCES = [a_namespace(), a_configmap(colour="red"), ROLE]
SELECTS_ROLE = {"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "reader"}


def patched(*overrides: Document, cluster: TargetCluster = EAST) -> dict[str, Document]:
    """What reaches a cluster, by kind."""
    found = overridden(RESOURCES, [snapshot(each) for each in overrides], cluster)
    return {str(each["kind"]): each for each in found}


def test_an_override_changes_what_it_names_on_the_clusters_that_it_names() -> None:
    blue = an_ro(for_clusters(to("/data/colour", "blue"), region="east"))
    assert patched(blue)["ConfigMap"]["data"] == {"colour": "blue"}
    assert patched(blue)["Namespace"] == a_namespace()
    assert patched(blue, cluster=WEST)["ConfigMap"]["data"] == {"colour": "red"}


def test_what_is_overridden_is_a_copy() -> None:
    before = copy.deepcopy(RESOURCES)
    patched(an_ro(for_clusters(to("/data/nested", {"a": ["b"]}, "add"))))
    assert before == RESOURCES


def test_naming_a_namespace_takes_along_what_is_in_it_and_nothing_else() -> None:
    labelled = a_cro(for_clusters(to("/metadata/labels", {"team": "shop"}, "add")))
    found = patched(labelled)
    assert [kind for kind in found if found[kind]["metadata"].get("labels")] == ["Namespace", "ConfigMap"]


def test_a_rule_without_selector_is_for_no_cluster_and_an_empty_selector_for_all() -> None:
    change = {"jsonPatchOverrides": [to("/data/colour", "blue")]}
    assert patched(an_ro(change))["ConfigMap"]["data"] == {"colour": "red"}
    assert patched(an_ro({**change, "clusterSelector": {}}))["ConfigMap"]["data"] == {"colour": "blue"}


def test_delete_keeps_an_object_from_a_cluster_whatever_follows() -> None:
    gone = an_ro(nothing_for(region="east"), for_clusters(to("/data/colour", "blue")))
    assert "ConfigMap" not in patched(gone)
    assert patched(gone, cluster=WEST)["ConfigMap"]["data"] == {"colour": "blue"}
    assert list(patched(a_cro(nothing_for(region="east")))) == ["ClusterRole"]


def test_rules_act_in_their_order_and_overrides_of_the_namespace_come_last() -> None:
    twice = an_ro(for_clusters(to("/data/colour", "blue")), for_clusters(to("/data/colour", "green")))
    assert patched(twice)["ConfigMap"]["data"] == {"colour": "green"}
    wide = a_cro(for_clusters(to("/data/colour", "black")), selectors=[SELECTS_ROLE])
    ordered = applicable([snapshot(twice), snapshot(wide)], EAST)
    assert ordered == AppliedOverrides(("all-0",), (NamespacedName("web", "one-0"),))
    both = a_cro(for_clusters(to("/metadata/labels", {"by": "cluster"}, "add")))
    last = an_ro(for_clusters(to("/metadata/labels/by", "namespace")))
    assert patched(both, last)["ConfigMap"]["metadata"]["labels"] == {"by": "namespace"}


def test_a_cluster_scoped_object_is_named_by_itself() -> None:
    rules = [{"verbs": ["get"]}]
    found = patched(a_cro(for_clusters(to("/rules", rules, "add")), selectors=[SELECTS_ROLE]))
    assert found["ClusterRole"]["rules"] == rules


def test_variables_become_the_clusters_name_and_labels_wherever_a_text_is() -> None:
    value = {
        "name": "at-${MEMBER-CLUSTER-NAME}",
        "places": ["${MEMBER-CLUSTER-LABEL-KEY-region}/${MEMBER-CLUSTER-LABEL-KEY-kube-fleet.io/zone}", 1, None],
        "${MEMBER-CLUSTER-NAME}": True,
    }
    data = patched(an_ro(for_clusters(to("/data", value))))["ConfigMap"]["data"]
    assert data == {"name": "at-east-1", "places": ["east/a", 1, None], "east-1": True}


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (to("/data/missing", "x"), "ConfigMap web/settings: replace /data/missing: there is no such field"),
        (without("/data/missing"), "remove /data/missing: there is no such field"),
        (to("/spec/deep", "x", "add"), "add /spec/deep: there is nothing to add it to"),
        (to("/data/colour/x", "x", "add"), "there is nothing to add it to"),
        (to("/data/colour", "${MEMBER-CLUSTER-LABEL-KEY-tier}"), "cluster east-1 has no label tier"),
        (to("/data/colour", "${MEMBER-CLUSTER-LABEL-KEY-tier"), "has no closing }"),
        (to("/metadata/name", "other"), "would be another object afterwards"),
        (to("/kind", "Secret"), "would be another object afterwards"),
        (to("", []), "would be another object afterwards"),
        ({"op": "move", "from": "/data", "path": "/x"}, "op must be one of add, remove, replace"),
    ],
)
def test_what_cannot_be_carried_out_is_named(operation: Document, message: str) -> None:
    with pytest.raises(OverrideFailed, match="ResourceOverride web/one-0: ") as failed:
        patched(an_ro(for_clusters(operation)))
    assert message in str(failed.value)


def test_a_selector_that_is_none_is_named() -> None:
    bad = {"clusterSelector": {"clusterSelectorTerms": [{"labelSelector": {"matchExpressions": [{"key": "a"}]}}]}}
    with pytest.raises(OverrideFailed, match="ClusterResourceOverride all-0: clusterSelector: "):
        applicable([snapshot(a_cro(bad))], EAST)


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (None, [WEB, ObjectKey("resourceplacement", "web", "web")]),
        ({"name": "web"}, [WEB]),
        ({"name": "web", "scope": "Cluster"}, [WEB]),
        ({"name": "web", "scope": "Namespaced"}, [ObjectKey("resourceplacement", "web", "web")]),
        ({"name": "other"}, []),
    ],
)
def test_an_override_is_for_the_placement_that_it_names(placement: Any, expected: list[ObjectKey]) -> None:
    override = snapshot(an_ro(**({"placement": placement} if placement else {})))
    candidates = [WEB, ObjectKey("resourceplacement", "web", "web")]
    assert [each for each in candidates if is_for(override, each)] == expected


def test_only_overrides_of_what_is_selected_count() -> None:
    ids = {named for each in RESOURCES for named in resource_ids(each)}
    elsewhere = an_ro(for_clusters(), namespace="shop")
    another_version = a_cro(selectors=[{**SELECTS_ROLE, "version": "v1beta1"}], name="old")
    snapshots = [snapshot(each) for each in (elsewhere, another_version, a_cro(), an_ro())]
    assert [each.name for each in relevant(snapshots, WEB, ids)] == ["all-0", "one-0"]
