"""Every field of overrides: rules, what never changes, and what others have taken already."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.plugins.override_validator import MOST_OVERRIDES
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document
from gardenbus.common.api.index_keys import index_keys_of
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.admissions import admit
from tests.support.overrides import NAMESPACE, SETTINGS, a_cro, an_ro, for_clusters, nothing_for, to, without

BLUE = for_clusters(to("/data/colour", "blue"))


def problems_of(document: Document, old: Document | None = None) -> dict[str, str]:
    with pytest.raises(InvalidResource) as caught:
        validate(document, old)
    return {problem.field: problem.message for problem in caught.value.problems}


def with_spec(document: Document, **spec: Any) -> Document:
    return {**document, "spec": {**document["spec"], **spec}}


def operating(**operation: Any) -> Document:
    return an_ro({"clusterSelector": {}, "jsonPatchOverrides": [operation]})


@pytest.mark.parametrize(
    "override",
    [
        a_cro(BLUE),
        an_ro(BLUE, nothing_for(region="east"), {"jsonPatchOverrides": [without("/data/x")]}),
        a_cro(BLUE, selectors=[{**NAMESPACE, "selectionScope": "NamespaceWithResources"}], placement={"name": "web"}),
        an_ro(BLUE, placement={"name": "web", "scope": "Namespaced"}),
        operating(op="add", path="/metadata/labels/a~1b", value="${MEMBER-CLUSTER-LABEL-KEY-kube-fleet.io/zone}"),
        operating(op="replace", path="/metadata/annotations", value={}),
        operating(op="replace", path="/statusPage", value=None),
    ],
)
def test_good_overrides_are_taken(override: Document) -> None:
    validate(override, None)


@pytest.mark.parametrize(
    ("override", "field", "message"),
    [
        (with_spec(a_cro(BLUE), policy=None), "spec.policy.overrideRules", "is needed"),
        (a_cro(), "spec.policy.overrideRules", "state what to change"),
        (a_cro(*[BLUE] * 21), "spec.policy.overrideRules", "at most 20"),
        (a_cro(BLUE, selectors=[]), "spec.clusterResourceSelectors", "name what is to be changed"),
        (an_ro(BLUE, selectors=[SETTINGS] * 2), "spec.resourceSelectors[1].name", "name it once"),
        (a_cro(BLUE, selectors=[{**NAMESPACE, "name": ""}]), "spec.clusterResourceSelectors[0].name", "is needed"),
        (
            a_cro(BLUE, selectors=[{**NAMESPACE, "labelSelector": {}}]),
            "spec.clusterResourceSelectors[0].labelSelector",
            "name the object",
        ),
        (a_cro(BLUE, selectors=[SETTINGS]), "spec.clusterResourceSelectors[0].kind", "make a ResourceOverride there"),
        (an_ro(BLUE, selectors=[NAMESPACE]), "spec.resourceSelectors[0].kind", "in a ClusterResourceOverride"),
        (a_cro(BLUE, placement={"name": "web", "scope": "Namespaced"}), "spec.placement.scope", "must be Cluster"),
        (a_cro(BLUE, placement={"scope": "Cluster"}), "spec.placement.name", "is needed"),
        (a_cro(BLUE, name="o" * 64), "metadata.name", "at most 63 characters"),
    ],
)
def test_what_an_override_is_about_is_checked(override: Document, field: str, message: str) -> None:
    assert message in problems_of(override)[field]


RULE = "spec.policy.overrideRules[0]"


BAD_RULES: list[tuple[Document, str, str]] = [
    ({"clusterSelector": {}}, "jsonPatchOverrides", "write at least one operation"),
    ({**BLUE, "overrideType": "Delete"}, "jsonPatchOverrides", "must be left out with overrideType Delete"),
    ({**BLUE, "overrideType": "Merge"}, "overrideType", "must be one of JSONPatch, Delete"),
    ({**BLUE, "clusterSelector": {"clusterSelectorTerms": [{}]}}, "…[0].labelSelector", "is needed"),
    (
        {
            **BLUE,
            "clusterSelector": {"clusterSelectorTerms": [{"labelSelector": {}, "propertySorter": {"name": 1}}]},
        },
        "…[0].propertySorter",
        "select clusters by labelSelector",
    ),
    (for_clusters(to("/a", 1), region="not a value"), "…[0].labelSelector.matchLabels", "not a value"),
    (for_clusters(*[to("/a", 1)] * 21), "jsonPatchOverrides", "at most 20"),
]


@pytest.mark.parametrize(("rule", "field", "message"), BAD_RULES)
def test_rules_are_checked(rule: Document, field: str, message: str) -> None:
    place = field.replace("…", "clusterSelector.clusterSelectorTerms")
    assert message in problems_of(an_ro(rule))[f"{RULE}.{place}"]


@pytest.mark.parametrize(
    ("operation", "field", "message"),
    [
        ({"op": "move", "path": "/a", "value": 1}, "op", "must be one of add, remove, replace"),
        ({"op": "remove", "path": "/a", "value": 1}, "value", "must be left out with op remove"),
        ({"op": "add", "path": "/a"}, "value", "is needed with op add"),
        ({"op": "add", "value": 1}, "path", "is needed"),
        (to("a", 1), "path", "begins with no /"),
        (to("/a//b", 1), "path", "has an empty part"),
        (to("/a/", 1), "path", "has an empty part"),
        (to("/a~2", 1), "path", "write ~0 for ~"),
        (to("/kind", "x"), "path", "what an object is, and its status, stay"),
        (to("/apiVersion/x", "x"), "path", "what an object is"),
        (to("/status/phase", "x"), "path", "its status"),
        (to("/metadata", {}), "path", "of metadata only /metadata/labels"),
        (to("/metadata/name", "x"), "path", "of metadata only /metadata/labels"),
        (to("/metadata/labelsX", "x"), "path", "of metadata only /metadata/labels"),
        (to("/a", ["${MEMBER-CLUSTER-LABEL-KEY-x"]), "value", "has no closing }"),
        (to("/a", {"b": "${MEMBER-CLUSTER-LABEL-KEY-no way}"}), "value", "names no label"),
    ],
)
def test_operations_are_checked(operation: Document, field: str, message: str) -> None:
    assert message in problems_of(operating(**operation))[f"{RULE}.jsonPatchOverrides[0].{field}"]


def test_the_placement_of_an_override_stays() -> None:
    old = a_cro(BLUE, placement={"name": "web"})
    validate(a_cro(BLUE, placement={"name": "web", "scope": "Cluster"}), old)
    assert "(Cluster web stays)" in problems_of(a_cro(BLUE, placement={"name": "other"}), old)["spec.placement"]
    assert "make a new override" in problems_of(a_cro(BLUE), old)["spec.placement"]
    assert "(no placement stays)" in problems_of(old, a_cro(BLUE))["spec.placement"]


def others(*overrides: Document) -> RelatedObjects:
    return RelatedObjects(all_of={str(overrides[0]["kind"]).lower(): overrides})


def test_an_object_has_one_override_of_each_kind() -> None:
    with pytest.raises(Forbidden, match=r"resourceSelectors\[0\]: ConfigMap settings is changed by .* two already"):
        admit(an_ro(BLUE), None, others(an_ro(BLUE, name="two")))
    admit(an_ro(BLUE), None, others(an_ro(BLUE, name="one"), an_ro(BLUE, name="two", namespace="shop")))
    with pytest.raises(Forbidden, match="Namespace web is changed by the ClusterResourceOverride two already"):
        admit(a_cro(BLUE), None, others(a_cro(BLUE, name="two")))


def test_there_are_a_hundred_overrides_at_most() -> None:
    many = [an_ro(BLUE, name=f"o{n}", selectors=[{**SETTINGS, "name": f"m{n}"}]) for n in range(MOST_OVERRIDES)]
    with pytest.raises(Forbidden, match="the namespace web has 100 ResourceOverrides already"):
        admit(an_ro(BLUE), None, others(*many))
    admit(an_ro(BLUE, namespace="shop"), None, others(*many))
    admit(many[0], many[0], others(*many))


def test_two_overrides_of_one_object_claim_the_same() -> None:
    claims = index_keys_of(an_ro(BLUE)).claims
    assert claims == index_keys_of(an_ro(BLUE, name="two")).claims == ("override/web//v1/ConfigMap/settings",)
    assert not set(claims) & set(index_keys_of(an_ro(BLUE, namespace="shop")).claims)
