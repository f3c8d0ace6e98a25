"""Every field of placements, evictions and budgets that something reads: rules, defaults, and what never changes."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.defaults import with_defaults
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placements import Placement
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import InvalidResource
from tests.support.admissions import admit, mutate, related_queries

EMPTY: Document = {}
PLACEMENT = "placement.kubernetes-fleet.io/v1beta1"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ALWAYS = "requiredDuringSchedulingRequiredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMESPACES = {"group": "", "version": "v1", "kind": "Namespace", "name": "team"}


def a_placement(policy: Document | None = None, kind: str = "ClusterResourcePlacement", **spec: Any) -> Document:
    selector = NAMESPACES if kind == "ClusterResourcePlacement" else {**NAMESPACES, "kind": "ConfigMap"}
    metadata = {"name": "web", **({} if kind == "ClusterResourcePlacement" else {"namespace": "team"})}
    stated = {"resourceSelectors": [selector], **({"policy": policy} if policy is not None else {}), **spec}
    return {"apiVersion": PLACEMENT, "kind": kind, "metadata": metadata, "spec": stated}


def an_eviction(**spec: Any) -> Document:
    kind = "ClusterResourcePlacementEviction"
    return {"apiVersion": PLACEMENT, "kind": kind, "metadata": {"name": "e"}, "spec": spec}


def a_budget(**spec: Any) -> Document:
    kind = "ClusterResourcePlacementDisruptionBudget"
    return {"apiVersion": PLACEMENT, "kind": kind, "metadata": {"name": "web"}, "spec": spec}


def affine(**affinity: Any) -> Document:
    return {"placementType": "PickN", "numberOfClusters": 1, "affinity": {"clusterAffinity": affinity}}


def requiring(*expressions: Document, field: str = REQUIRED) -> Document:
    return affine(**{field: {"clusterSelectorTerms": [{"propertySelector": {"matchExpressions": list(expressions)}}]}})


def preferring(weight: Any = 1, **preference: Any) -> Document:
    return affine(**{PREFERRED: [{"weight": weight, "preference": preference}]})


def comparing(name: str = "nodes", operator: str = "Gt", values: Any = ("4",)) -> Document:
    return {"name": name, "operator": operator, "values": list(values)}


def problems_of(document: Document, old: Document | None = None) -> dict[str, str]:
    with pytest.raises(InvalidResource) as caught:
        validate(document, old)
    return {
        problem.field.replace("spec.policy.affinity.clusterAffinity.", "…"): problem.message
        for problem in caught.value.problems
    }


N3: Document = {"placementType": "PickN", "numberOfClusters": 3}
FIXED: Document = {"placementType": "PickFixed", "clusterNames": ["east"]}
SPREAD = [{"topologyKey": "region"}]
TOLERATION = {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    "policy",
    [
        None,
        {},
        {"placementType": "PickAll", "tolerations": [TOLERATION, {"operator": "Exists"}]},
        {**N3, "numberOfClusters": 0, "topologySpreadConstraints": SPREAD, "tolerations": [{"key": "a"}]},
        {**FIXED, "affinity": None, "tolerations": []},
        requiring(comparing(), comparing("resources.kubernetes-fleet.io/total-cpu", "Ne", ["1500m"]), field=ALWAYS),
        preferring(-100, propertySorter={"name": "nodes", "sortOrder": "Ascending"}),
        preferring(100, labelSelector={"matchLabels": {"region": "eu"}}),
        affine(**{REQUIRED: {"clusterSelectorTerms": []}}),
    ],
)
@pytest.mark.parametrize("kind", ["ClusterResourcePlacement", "ResourcePlacement"])
def test_a_policy_is_right(policy: Document | None, kind: str) -> None:
    placement = with_defaults(a_placement(policy, kind))
    assert key_of(placement).name == "web"
    validate(placement, None)
    validate(with_defaults(placement), placement)
    Placement.from_document(placement)


@pytest.mark.parametrize(
    ("policy", "field", "message"),
    [
        ({"placementType": "PickSome"}, "spec.policy.placementType", "must be one of"),
        ({"clusterNames": ["a"]}, "spec.policy.clusterNames", "PickFixed alone"),
        ({"numberOfClusters": 0}, "spec.policy.numberOfClusters", "PickN alone"),
        ({"topologySpreadConstraints": SPREAD}, "spec.policy.topologySpreadConstraints", "PickN alone"),
        ({"placementType": "PickN"}, "spec.policy.numberOfClusters", "is needed for PickN"),
        ({**N3, "numberOfClusters": -1}, "spec.policy.numberOfClusters", "at least 0"),
        ({**N3, "clusterNames": ["a"]}, "spec.policy.clusterNames", "leave it out"),
        ({"placementType": "PickFixed"}, "spec.policy.clusterNames", "name at least one"),
        ({**FIXED, "numberOfClusters": 1}, "spec.policy.numberOfClusters", "PickN alone"),
        ({**FIXED, "affinity": {"clusterAffinity": {}}}, "spec.policy.affinity", "PickAll and PickN alone"),
        ({**FIXED, "tolerations": [TOLERATION]}, "spec.policy.tolerations", "PickAll and PickN alone"),
        ({**FIXED, "topologySpreadConstraints": SPREAD}, "spec.policy.topologySpreadConstraints", "PickN alone"),
        ({**FIXED, "clusterNames": ["a", "a"]}, "spec.policy.clusterNames[1]", "name it once"),
        ({**FIXED, "clusterNames": ["A"]}, "spec.policy.clusterNames[0]", "no name here"),
        ({**FIXED, "clusterNames": [f"c{i}" for i in range(101)]}, "spec.policy.clusterNames", "at most 100, not 101"),
        (affine(**{REQUIRED: {"clusterSelectorTerms": [{}] * 11}}), f"…{REQUIRED}.clusterSelectorTerms", "at most 10"),
        (affine(**{ALWAYS: {"clusterSelectorTerms": [{}] * 11}}), f"…{ALWAYS}.clusterSelectorTerms", "at most 10"),
        (preferring(101), f"…{PREFERRED}[0].weight", "at most 100"),
        (preferring(-101), f"…{PREFERRED}[0].weight", "at least -100"),
        (preferring(None), f"…{PREFERRED}[0].weight", "is needed"),
        (preferring(propertySelector={}), f"…{PREFERRED}[0].preference.propertySelector", "propertySorter"),
        (preferring(propertySorter={"name": "a"}), f"…{PREFERRED}[0].preference.propertySorter.sortOrder", "is needed"),
        (
            {**N3, "topologySpreadConstraints": [EMPTY]},
            "spec.policy.topologySpreadConstraints[0].topologyKey",
            "needed",
        ),
        (
            {**N3, "topologySpreadConstraints": [{"topologyKey": "a", "maxSkew": 0}]},
            "spec.policy.topologySpreadConstraints[0].maxSkew",
            "at least 1",
        ),
        (
            {**N3, "topologySpreadConstraints": SPREAD * 2},
            "spec.policy.topologySpreadConstraints[1].topologyKey",
            "keep one",
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
            "spec.policy.tolerations[0].value",
            "Equal",
        ),
        ({"tolerations": [{"value": "b"}]}, "spec.policy.tolerations[0].key", "Exists without a key"),
        ({"tolerations": [{"key": "a", "effect": "NoExecute"}]}, "spec.policy.tolerations[0].effect", "NoSchedule"),
        ({"tolerations": [{"key": "a"}, {"key": "a"}]}, "spec.policy.tolerations[1].key", "keep one"),
        ({"tolerations": "a"}, "spec.policy.tolerations", "a list"),
        ([], "spec.policy", "a mapping"),
    ],
)
def test_a_policy_is_wrong(policy: Any, field: str, message: str) -> None:
    assert message in problems_of(with_defaults(a_placement(policy)))[field]


@pytest.mark.parametrize(
    ("expression", "field", "message"),
    [
        (comparing("resources.kubernetes-fleet.io/available-"), "name", "no resource"),
        (comparing("resources.kubernetes-fleet.io/-cpu"), "name", "no resource"),
        (comparing("resources.kubernetes-fleet.io/total-b-c"), "name", "no resource"),
        (comparing("resources.kubernetes-fleet.io/unknown-cpu"), "name", "no resource"),
        (comparing("no key"), "name", "no key"),
        (comparing(""), "name", "is needed"),
        (comparing(operator="In"), "operator", "must be one of Gt, Ge"),
        (comparing(values=[]), "values", "exactly one quantity"),
        (comparing(values=["1", "2"]), "values", "exactly one quantity"),
        (comparing(values=["many"]), "values[0]", "not a quantity"),
        (comparing(values=[4]), "values[0]", "put it in quotes"),
    ],
)
def test_what_would_end_every_cycle_is_not_taken(expression: Document, field: str, message: str) -> None:
    path = f"…{REQUIRED}.clusterSelectorTerms[0].propertySelector.matchExpressions[0].{field}"
    assert message in problems_of(a_placement(requiring(expression)))[path]


def test_a_required_term_does_not_rank() -> None:
    term = {"propertySorter": {"name": "nodes", "sortOrder": "Ascending"}}
    problems = problems_of(a_placement(affine(**{REQUIRED: {"clusterSelectorTerms": [term]}})))
    assert list(problems) == [f"…{REQUIRED}.clusterSelectorTerms[0].propertySorter"]


@pytest.mark.parametrize(
    ("before", "after"), [(None, N3), ({}, FIXED), (N3, None), (N3, {"placementType": "PickAll"}), (FIXED, N3)]
)
def test_the_type_of_a_placement_stays(before: Document | None, after: Document | None) -> None:
    problems = problems_of(a_placement(after), a_placement(before))
    assert "make a new placement" in problems["spec.policy.placementType"]


def test_no_policy_an_empty_one_and_pick_all_are_the_same() -> None:
    same: list[Document | None] = [None, {}, {"placementType": "PickAll"}]
    for before in same:
        for after in same:
            validate(a_placement(after), a_placement(before))


def test_tolerations_can_only_be_added() -> None:
    old = a_placement({"tolerations": [TOLERATION]})
    other = {"key": "drain", "operator": "Exists"}
    validate(a_placement({"tolerations": [other, TOLERATION]}), old)
    validate(
        a_placement({"tolerations": [{"key": "a"}]}), a_placement({"tolerations": [{"key": "a", "operator": "Equal"}]})
    )
    gone: list[Document | None] = [None, {}, {"tolerations": [other]}, {"tolerations": [{**TOLERATION, "value": "no"}]}]
    for policy in gone:
        assert "can only be added" in problems_of(a_placement(policy), old)["spec.policy.tolerations"]


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"resourceSelectors": []}, "spec.resourceSelectors", "must not be empty"),
        ({"resourceSelectors": None}, "spec.resourceSelectors", "is needed"),
        ({"resourceSelectors": [NAMESPACES] * 101}, "spec.resourceSelectors", "at most 100"),
        ({"resourceSelectors": [{"version": "v1"}]}, "spec.resourceSelectors[0].kind", "is needed"),
        ({"resourceSelectors": [{"kind": "Namespace"}]}, "spec.resourceSelectors[0].version", "is needed"),
        (
            {"resourceSelectors": [{**NAMESPACES, "labelSelector": {"matchLabels": {"a": "b"}}}]},
            "spec.resourceSelectors[0].labelSelector",
            "keep one of them",
        ),
        (
            {"resourceSelectors": [{"group": "apps", "version": "v1", "kind": "Deployment"}]},
            "spec.resourceSelectors[0].kind",
            "select its Namespace",
        ),
        (
            {"resourceSelectors": [{**NAMESPACES, "selectionScope": "All"}]},
            "spec.resourceSelectors[0].selectionScope",
            "one of",
        ),
        ({"revisionHistoryLimit": 0}, "spec.revisionHistoryLimit", "at least 1"),
        ({"revisionHistoryLimit": 1001}, "spec.revisionHistoryLimit", "at most 1000"),
        ({"strategy": {"type": "Recreate"}}, "spec.strategy.type", "RollingUpdate, External"),
        ({"strategy": {"rollingUpdate": {"maxSurge": "101%"}}}, "spec.strategy.rollingUpdate.maxSurge", "0% to 100%"),
        ({"strategy": {"rollingUpdate": {"maxSurge": "1"}}}, "spec.strategy.rollingUpdate.maxSurge", "a number as 2"),
        (
            {"strategy": {"rollingUpdate": {"maxUnavailable": -1}}},
            "spec.strategy.rollingUpdate.maxUnavailable",
            "least 0",
        ),
        (
            {"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "0%"}}},
            "spec.strategy.rollingUpdate.maxSurge",
            "no change could ever go out",
        ),
        (
            {"strategy": {"rollingUpdate": {"unavailablePeriodSeconds": -1}}},
            "spec.strategy.rollingUpdate.unavailablePeriodSeconds",
            "at least 0",
        ),
        ({"statusReportingScope": "All"}, "spec.statusReportingScope", "ClusterScopeOnly, NamespaceAccessible"),
        (
            {"strategy": {"deleteStrategy": {"propagationPolicy": "Orphan"}}},
            "spec.strategy.deleteStrategy.propagationPolicy",
            "Delete, Abandon",
        ),
        (
            {"strategy": {"reportBackStrategy": {"destination": "WorkAPI"}}},
            "spec.strategy.reportBackStrategy.type",
            "is needed",
        ),
        (
            {"strategy": {"reportBackStrategy": {"type": "Mirror", "destination": "Hub"}}},
            "spec.strategy.reportBackStrategy.destination",
            "OriginalResource, WorkAPI",
        ),
        ({"strategy": {"applyStrategy": {"type": "Pull"}}}, "spec.strategy.applyStrategy.type", "ServerSideApply"),
        (
            {"strategy": {"applyStrategy": {"allowCoOwnership": 1}}},
            "spec.strategy.applyStrategy.allowCoOwnership",
            "true",
        ),
    ],
)
def test_the_rest_of_a_placement_is_wrong(spec: Document, field: str, message: str) -> None:
    assert message in problems_of(with_defaults(a_placement(**spec)))[field]


def test_a_selected_object_has_a_name_of_its_kind() -> None:
    roles = {"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "secretReader:all"}
    validate(a_placement(resourceSelectors=[roles]), None)
    for selector in ({**roles, "name": "a/b"}, {**NAMESPACES, "name": "secretReader"}):
        assert set(problems_of(a_placement(resourceSelectors=[selector]))) == {"spec.resourceSelectors[0].name"}


def test_a_namespaced_placement_takes_nothing_of_the_cluster() -> None:
    problems = problems_of(a_placement(kind="ResourcePlacement", resourceSelectors=[NAMESPACES]))
    assert "ClusterResourcePlacement" in problems["spec.resourceSelectors[0].kind"]
    unknown = {"group": "storage.k8s.io", "version": "v1", "kind": "CSIDriver"}
    validate(a_placement(kind="ResourcePlacement", resourceSelectors=[unknown]), None)


def test_a_placement_has_a_name_that_fits_a_label() -> None:
    placement = a_placement()
    placement["metadata"]["name"] = "a" * 64
    assert "at most 63" in problems_of(placement)["metadata.name"]


def test_what_a_placement_leaves_out_is_filled_in() -> None:
    policy = {**N3, "topologySpreadConstraints": [{"topologyKey": "a"}], "tolerations": [{"key": "a"}]}
    spec = with_defaults(a_placement(policy))["spec"]
    assert spec["policy"]["topologySpreadConstraints"] == [
        {"topologyKey": "a", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    ]
    assert spec["policy"]["tolerations"] == [{"key": "a", "operator": "Equal"}]
    assert spec["revisionHistoryLimit"] == 10
    rolling = {"maxUnavailable": "25%", "maxSurge": "25%", "unavailablePeriodSeconds": 60}
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}
    assert with_defaults(a_placement({}))["spec"]["policy"] == {"placementType": "PickAll"}
    assert "policy" not in with_defaults(a_placement())["spec"]
    assert with_defaults(a_placement(strategy={"type": "External"}))["spec"]["strategy"] == {"type": "External"}


def test_what_a_placement_states_stays_and_filling_in_twice_changes_nothing() -> None:
    rolling = {"maxUnavailable": 0, "maxSurge": 1, "unavailablePeriodSeconds": 0}
    stated = a_placement(N3, strategy={"rollingUpdate": rolling}, revisionHistoryLimit=3)
    filled = with_defaults(stated)
    assert filled["spec"]["strategy"]["rollingUpdate"] == rolling
    assert filled["spec"]["revisionHistoryLimit"] == 3
    assert with_defaults(filled) is filled


@pytest.mark.parametrize("spec", [None, 5, [], {"policy": 5, "strategy": []}, {"policy": {"tolerations": [5]}}])
def test_what_is_malformed_is_noted_and_nothing_else_happens(spec: Any) -> None:
    for kind in ("ClusterResourcePlacement", "ResourcePlacement", "MemberCluster"):
        document = with_defaults({**a_placement(), "kind": kind, "spec": spec})
        if kind != "MemberCluster" or spec in (5, []):
            assert problems_of(document)


def test_preferences_of_pick_all_are_answered_with_a_warning() -> None:
    policy = {"affinity": preferring()["affinity"]}
    (warning,) = mutate(a_placement(policy), None, RelatedObjects(), user="ann").warnings
    assert "PickAll ranks nothing" in warning
    assert mutate(a_placement(preferring()), None, RelatedObjects(), user="ann").warnings == ()


def test_an_eviction_names_placement_and_cluster_and_stays_as_it_is() -> None:
    eviction = an_eviction(placementName="web", clusterName="east")
    validate(eviction, eviction)
    assert set(problems_of(an_eviction())) == {"spec.placementName", "spec.clusterName"}
    changed = an_eviction(placementName="api", clusterName="west")
    assert set(problems_of(changed, eviction)) == {"spec.placementName", "spec.clusterName"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec"),
        ({"maxUnavailable": 1, "minAvailable": 1}, "spec.maxUnavailable"),
        ({"minAvailable": "many"}, "spec.minAvailable"),
        ({"maxUnavailable": -1}, "spec.maxUnavailable"),
    ],
)
def test_a_budget_has_one_limit(spec: Document, field: str) -> None:
    assert list(problems_of(a_budget(**spec))) == [field]


def test_a_budget_of_pick_all_is_a_number_that_stays() -> None:
    key = ObjectKey("clusterresourceplacement", "", "web")
    assert list(related_queries(a_budget(minAvailable=1), None)) == [ObjectQuery(key)]
    for policy in (None, {"placementType": "PickAll"}):
        related = RelatedObjects(objects={key: a_placement(policy)})
        admit(a_budget(minAvailable=1), None, related)
        for spec in ({"minAvailable": "50%"}, {"maxUnavailable": 1}):
            with pytest.raises(InvalidResource, match="write minAvailable as a number"):
                admit(a_budget(**spec), None, related)
    admit(a_budget(maxUnavailable=1), None, RelatedObjects())
    admit(a_budget(maxUnavailable=1), None, RelatedObjects(objects={key: a_placement(N3)}))
