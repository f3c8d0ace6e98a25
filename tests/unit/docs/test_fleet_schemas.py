"""The kinds of placements have schemas, for editors and for who speaks to the bus, and a place on the page of kinds."""

from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator, ValidationError

from gardenbus.common.api.kinds import CLUSTER, KINDS, PLACEMENT
from gardenbus.docs.json_schemas import schemas
from gardenbus.docs.kinds import kinds_page

FLEET = sorted(kind.kind for kind in KINDS.values() if kind.group in (CLUSTER, PLACEMENT))
Document = dict[str, Any]


def check(document: Document) -> None:
    Draft202012Validator(schemas()[document["kind"]]).validate(document)  # pyright: ignore[reportUnknownMemberType]


def a_manifest(kind: str, **parts: Any) -> Document:
    return {"apiVersion": KINDS[kind.lower()].api_version, "kind": kind, "metadata": {"name": "web"}, **parts}


@pytest.mark.parametrize("kind", FLEET)
def test_each_kind_has_a_schema_that_holds_for_this_kind_alone(kind: str) -> None:
    check(a_manifest(kind))
    check(a_manifest(kind, spec={"unheardOf": 1}))
    with pytest.raises(ValidationError):
        check(a_manifest(kind) | {"apiVersion": "v1"})
    with pytest.raises(ValidationError):
        check(a_manifest(kind, **{"spec" if KINDS[kind.lower()].has_spec else "data": 5}))


@pytest.mark.parametrize("kind", FLEET)
def test_each_kind_is_on_the_page(kind: str) -> None:
    titles = [line.removeprefix("## ").split(", ") for line in kinds_page().splitlines() if line.startswith("## ")]
    assert kind in [name for title in titles for name in title]


def test_the_schema_of_a_placement_knows_its_policy() -> None:
    policy: Document = {"placementType": "PickN", "numberOfClusters": 3, "topologySpreadConstraints": [{"maxSkew": 1}]}
    strategy = {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 1}}
    check(a_manifest("ClusterResourcePlacement", spec={"policy": policy, "strategy": strategy}))
    term = {"preference": {"labelSelector": {"matchLabels": {"a": "b"}}}, "weight": 20}
    affinity = {"clusterAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    check(a_manifest("ResourcePlacement", spec={"policy": {**policy, "affinity": affinity}}))
    for wrong in ({"placementType": "PickSome"}, {"numberOfClusters": "three"}, {"affinity": {"clusterAffinity": 1}}):
        with pytest.raises(ValidationError):
            check(a_manifest("ClusterResourcePlacement", spec={"policy": {**policy, **wrong}}))


def test_a_schema_has_the_fields_that_nothing_here_reads_too() -> None:
    strategy = {"deleteStrategy": {"propagationPolicy": "Abandon"}}
    check(a_manifest("ClusterResourcePlacement", spec={"strategy": strategy}))
    check(a_manifest("Shoot", spec={"hibernation": {"schedules": [{"start": "0 20 * * *"}]}}))
    wrong: list[tuple[str, Document]] = [
        ("ClusterResourcePlacement", {"strategy": {"deleteStrategy": {"propagationPolicy": 1}}}),
        ("Shoot", {"hibernation": {"schedules": "0 20 * * *"}}),
        ("Shoot", {"provider": {"workers": [{"sysctls": []}]}}),
    ]
    for kind, spec in wrong:
        with pytest.raises(ValidationError):
            check(a_manifest(kind, spec=spec))


def test_the_schema_of_a_resource_snapshot_takes_any_objects() -> None:
    check(a_manifest("ClusterResourceSnapshot", spec={"selectedResources": [{"kind": "Namespace"}]}))
    with pytest.raises(ValidationError):
        check(a_manifest("ClusterResourceSnapshot", spec={"selectedResources": ["Namespace"]}))


def test_no_part_of_a_schema_has_a_name_of_the_code_s_own() -> None:
    for kind in FLEET:
        parts = cast("Document", schemas()[kind].get("$defs", {}))
        assert not [name for name in parts if name.startswith("_")], kind


def test_a_limit_is_a_number_or_a_text_on_the_page() -> None:
    assert "| `spec.strategy.rollingUpdate.maxSurge` | whole number or text |" in kinds_page()
