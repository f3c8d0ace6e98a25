"""What a status may hold beside the fields of its kind."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.fields import unknown
from gardenbus.apiserver.domain.fields.unknown import check_unknown_fields, check_unknown_status, unknown_parts
from gardenbus.common.errors import InvalidResource

SHOOT = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot"}
SEED = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed"}
CLUSTER = {"apiVersion": "cluster.kubernetes-fleet.io/v1", "kind": "MemberCluster"}
WORK = {"apiVersion": "placement.kubernetes-fleet.io/v1", "kind": "Work"}
REPORTED = (SHOOT, SEED, CLUSTER, WORK)
"""Kinds whose status comes from outside."""


def rejected(kind: dict[str, str], reported: dict[str, Any], merged: dict[str, Any] | None = None) -> str:
    with pytest.raises(InvalidResource) as error:
        check_unknown_status(kind, reported, reported if merged is None else merged)
    return error.value.message


@pytest.mark.parametrize("kind", REPORTED, ids=lambda kind: kind["kind"])
def test_what_the_kind_does_not_have_is_bounded_in_size_and_number(kind: dict[str, str]) -> None:
    check_unknown_status(kind, {"new": "x" * 1000, "newer": {"a": [1]}}, {"new": "x" * 1000, "newer": {"a": [1]}})
    large = {"observedByMe": "x" * unknown.MOST_UNKNOWN_BYTES}
    assert "unknownStatusBytes" in rejected(kind, large)
    assert "status.observedByMe" in rejected(kind, large)
    many = {f"f{number}": 1 for number in range(unknown.MOST_UNKNOWN_FIELDS + 1)}
    assert "unknownStatusFields" in rejected(kind, many)


def test_many_small_reports_do_not_get_past_what_one_may_hold() -> None:
    stored = {f"f{number}": 1 for number in range(unknown.MOST_UNKNOWN_FIELDS)}
    assert "unknownStatusFields" in rejected(SHOOT, {"one": 1}, {**stored, "one": 1})


def test_a_report_without_such_fields_is_taken_whatever_is_stored() -> None:
    stored = {f"f{number}": 1 for number in range(1000)}
    check_unknown_status(SHOOT, {"observedGeneration": 1}, {**stored, "observedGeneration": 1})


@pytest.mark.parametrize(
    ("status", "path"),
    [
        ({"lastOperation": {"state": "Succeeded", "secret": 1}}, ("lastOperation", "secret")),
        ({"conditions": [{"type": "A", "x": 1}]}, ("conditions", 0, "x")),
        ({"networking": {"pods": ["10.0.0.0/8"], "y": 1}}, ("networking", "y")),
    ],
)
def test_fields_within_known_ones_count_too(status: dict[str, Any], path: tuple[str | int, ...]) -> None:
    assert [part.path for part in unknown_parts(SHOOT, status)] == [path]


def test_conditions_are_bounded_by_number() -> None:
    conditions = [{"type": f"T{number}", "status": "True"} for number in range(unknown.MOST_CONDITIONS + 1)]
    assert "statusConditions" in rejected(SHOOT, {"conditions": conditions[:1]}, {"conditions": conditions})
    check_unknown_status(SHOOT, {"conditions": conditions[:-1]}, {"conditions": conditions[:-1]})


APPLIED = (SEED, CLUSTER, {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "ShootState"})
"""Kinds whose manifests agents apply."""


@pytest.mark.parametrize("kind", APPLIED, ids=lambda kind: kind["kind"])
@pytest.mark.parametrize("place", ["", "spec", "metadata"])
def test_manifests_of_agents_are_bounded_in_what_their_kind_does_not_have(kind: dict[str, str], place: str) -> None:
    def a_manifest(fields: dict[str, Any]) -> dict[str, Any]:
        return {**kind, place: fields} if place else {**kind, **fields}

    check_unknown_fields(a_manifest({"new": "x" * 1000, "newer": {"a": [1]}}))
    with pytest.raises(InvalidResource, match=r"unknownBytes.*: leave out .*observedByMe"):
        check_unknown_fields(a_manifest({"observedByMe": "x" * unknown.MOST_UNKNOWN_BYTES}))
    with pytest.raises(InvalidResource, match="unknownFields"):
        check_unknown_fields(a_manifest({f"f{number}": 1 for number in range(unknown.MOST_UNKNOWN_FIELDS + 1)}))


def test_the_status_of_a_manifest_is_ignored_and_does_not_count() -> None:
    check_unknown_fields({**SEED, "status": {"observedByMe": "x" * unknown.MOST_UNKNOWN_BYTES}})
