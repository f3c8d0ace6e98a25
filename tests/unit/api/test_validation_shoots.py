"""Every field of a Shoot that something reads."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, FieldErrors
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document
from gardenbus.common.errors import FieldProblem, InvalidResource
from tests.support.builders import a_shoot, merged

EMPTY: Document = {}


def problems_of(document: Document, old: Document | None = None) -> dict[str, str]:
    with pytest.raises(InvalidResource) as caught:
        validate(document, old)
    return {problem.field: problem.message for problem in caught.value.problems}


def test_a_good_shoot_passes_with_fields_that_nobody_knows() -> None:
    validate(a_shoot(spec={"nobodyKnows": {"x": [1]}, "provider": {"infrastructureConfig": "<anything>"}}), None)


def test_null_counts_as_absent() -> None:
    shoot = a_shoot(spec={"networking": {"nodes": None, "pods": None, "services": None}})
    shoot["spec"] |= {"dns": None, "tolerations": None, "purpose": None, "kubernetes": None}
    validate(shoot, None)


WORKER: Document = {"name": "a", "minimum": 1, "maximum": 2}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"region": None}, "spec.region"),
        ({"region": ""}, "spec.region"),
        ({"region": 5}, "spec.region"),
        ({"cloudProfile": None}, "spec.cloudProfile.name"),
        ({"cloudProfile": {"kind": "Other"}}, "spec.cloudProfile.kind"),
        ({"cloudProfile": {"name": None}}, "spec.cloudProfile.name"),
        ({"cloudProfile": "aws"}, "spec.cloudProfile"),
        ({"provider": None}, "spec.provider.type"),
        ({"provider": []}, "spec.provider"),
        ({"provider": {"type": None}}, "spec.provider.type"),
        ({"provider": {"type": ["aws"]}}, "spec.provider.type"),
        ({"provider": {"workers": {}}}, "spec.provider.workers"),
        ({"provider": {"workers": ["a"]}}, "spec.provider.workers[0]"),
        ({"provider": {"workers": [EMPTY]}}, "spec.provider.workers[0].name"),
        ({"provider": {"workers": [{"name": "A"}]}}, "spec.provider.workers[0].name"),
        ({"provider": {"workers": [{"name": "a"}, {"name": "a"}]}}, "spec.provider.workers[1].name"),
        ({"provider": {"workers": [WORKER | {"minimum": 3}]}}, "spec.provider.workers[0].maximum"),
        ({"provider": {"workers": [WORKER | {"minimum": -1}]}}, "spec.provider.workers[0].minimum"),
        ({"provider": {"workers": [WORKER | {"maximum": "2"}]}}, "spec.provider.workers[0].maximum"),
        ({"provider": {"workers": [WORKER | {"maximum": 2**31}]}}, "spec.provider.workers[0].maximum"),
        (
            {"provider": {"workers": [{"name": "a", "maximum": 2**31 - 1, "minimum": 2**31}]}},
            "spec.provider.workers[0].minimum",
        ),
        ({"provider": {"workers": [WORKER | {"maximum": True}]}}, "spec.provider.workers[0].maximum"),
        ({"provider": {"workers": [WORKER | {"maximum": 2.5}]}}, "spec.provider.workers[0].maximum"),
        ({"provider": {"workers": [WORKER | {"volume": {"size": "20Gib"}}]}}, "spec.provider.workers[0].volume.size"),
        (
            {"provider": {"workers": [WORKER | {"dataVolumes": [{"name": "d", "size": "1Ti"}]}]}},
            "spec.provider.workers[0].dataVolumes[0].size",
        ),
        ({"provider": {"workers": [WORKER | {"zones": "a"}]}}, "spec.provider.workers[0].zones"),
        ({"provider": {"workers": [WORKER | {"zones": [1]}]}}, "spec.provider.workers[0].zones[0]"),
        ({"provider": {"workers": [WORKER | {"zones": ["a", "a"]}]}}, "spec.provider.workers[0].zones[1]"),
        ({"provider": {"workers": [WORKER | {"controlPlane": True}]}}, "spec.provider.workers[0].controlPlane"),
        ({"provider": {"workers": [WORKER | {"machine": {"type": 1}}]}}, "spec.provider.workers[0].machine.type"),
        ({"schedulerName": "a.b"}, "spec.schedulerName"),
        ({"schedulerName": "a*"}, "spec.schedulerName"),
        ({"seedName": "A"}, "spec.seedName"),
        ({"seedName": 5}, "spec.seedName"),
        ({"purpose": "fun"}, "spec.purpose"),
        ({"purpose": "infrastructure"}, "spec.purpose"),
        ({"exposureClassName": {}}, "spec.exposureClassName"),
        ({"networking": {"pods": "100.96.0.0"}}, "spec.networking.pods"),
        ({"networking": {"pods": "100.96.0.0/33"}}, "spec.networking.pods"),
        ({"networking": {"nodes": "x"}}, "spec.networking.nodes"),
        ({"networking": {"nodes": 10}}, "spec.networking.nodes"),
        ({"networking": {"services": "fd00::/48"}}, "spec.networking.services"),
        ({"networking": {"ipFamilies": ["IPv5"]}}, "spec.networking.ipFamilies[0]"),
        ({"networking": {"ipFamilies": ["IPv4", "IPv4"]}}, "spec.networking.ipFamilies[1]"),
        ({"networking": {"ipFamilies": "IPv4"}}, "spec.networking.ipFamilies"),
        ({"seedSelector": []}, "spec.seedSelector"),
        ({"seedSelector": {"matchLabels": {"a": 1}}}, "spec.seedSelector.matchLabels[a]"),
        ({"seedSelector": {"matchLabels": {"a b": "c"}}}, "spec.seedSelector.matchLabels"),
        ({"seedSelector": {"matchExpressions": [{"key": "a"}]}}, "spec.seedSelector.matchExpressions[0].operator"),
        (
            {"seedSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            "spec.seedSelector.matchExpressions[0].operator",
        ),
        (
            {"seedSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "spec.seedSelector.matchExpressions[0].values",
        ),
        (
            {"seedSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}},
            "spec.seedSelector.matchExpressions[0].values",
        ),
        ({"seedSelector": {"providerTypes": [None]}}, "spec.seedSelector.providerTypes[0]"),
        ({"controlPlane": {"zones": ["a", "a"]}}, "spec.controlPlane.zones[1]"),
        (
            {"controlPlane": {"highAvailability": {"failureTolerance": {"type": "region"}}}},
            "spec.controlPlane.highAvailability.failureTolerance.type",
        ),
        ({"controlPlane": {"highAvailability": {}}}, "spec.controlPlane.highAvailability.failureTolerance.type"),
        ({"tolerations": [{"value": "x"}]}, "spec.tolerations[0].key"),
        ({"tolerations": [{"key": "a b"}]}, "spec.tolerations[0].key"),
        ({"tolerations": [{"key": "a", "value": 1}]}, "spec.tolerations[0].value"),
        ({"tolerations": [{"key": "a"}, {"key": "a"}]}, "spec.tolerations[1].key"),
        ({"tolerations": [{"key": "a"}, {"key": "a", "value": "b"}]}, "spec.tolerations[1].key"),
        ({"accessRestrictions": [EMPTY]}, "spec.accessRestrictions[0].name"),
        ({"accessRestrictions": [{"name": "a"}, {"name": "a"}]}, "spec.accessRestrictions[1].name"),
        ({"accessRestrictions": [{"name": "a", "options": {"x": False}}]}, "spec.accessRestrictions[0].options[x]"),
        ({"dns": {"domain": "a..b"}}, "spec.dns.domain"),
        ({"dns": {"providers": [{"type": 5}]}}, "spec.dns.providers[0].type"),
        ({"kubernetes": {"version": 1.34}}, "spec.kubernetes.version"),
        ({"hibernation": {"enabled": "yes"}}, "spec.hibernation.enabled"),
        ({"hibernation": {"schedules": {}}}, "spec.hibernation.schedules"),
        ({"hibernation": {"schedules": [EMPTY]}}, "spec.hibernation.schedules[0]"),
        ({"hibernation": {"schedules": [{"start": "0 25 * * *"}]}}, "spec.hibernation.schedules[0].start"),
        ({"hibernation": {"schedules": [{"end": 5}]}}, "spec.hibernation.schedules[0].end"),
        (
            {"hibernation": {"schedules": [{"start": "0 20 * * *"}, {"end": "0 20 * * *"}]}},
            "spec.hibernation.schedules[1].end",
        ),
        (
            {"hibernation": {"schedules": [{"start": "0 20 * * *", "location": "Europe/Berlim"}]}},
            "spec.hibernation.schedules[0].location",
        ),
        ({"maintenance": {"autoUpdate": {"kubernetesVersion": 1}}}, "spec.maintenance.autoUpdate.kubernetesVersion"),
        (
            {"maintenance": {"timeWindow": {"begin": "22:00", "end": "230000+0100"}}},
            "spec.maintenance.timeWindow.begin",
        ),
        ({"maintenance": {"timeWindow": {"begin": "220000+0100"}}}, "spec.maintenance.timeWindow.end"),
        (
            {"maintenance": {"timeWindow": {"begin": "220000+0100", "end": "222900+0100"}}},
            "spec.maintenance.timeWindow",
        ),
        (
            {"maintenance": {"timeWindow": {"begin": "220000+0100", "end": "060000+0200"}}},
            "spec.maintenance.timeWindow",
        ),
    ],
)
def test_each_rule_names_its_field(spec: Document, field: str) -> None:
    assert field in problems_of(a_shoot(spec=spec))


def test_a_window_and_schedules_are_accepted() -> None:
    schedules = [{"start": "00 20 * * mon-fri", "end": "0 6 * * ?", "location": "Europe/Berlin"}, {"start": "@weekly"}]
    window = {"begin": "233000-0800", "end": "053000-0800"}
    validate(a_shoot(spec={"hibernation": {"schedules": schedules}, "maintenance": {"timeWindow": window}}), None)


def test_times_that_were_stored_before_they_were_checked_may_stay() -> None:
    stored = a_shoot(spec={"hibernation": {"schedules": [{"start": "daily"}]}, "purpose": "testing"})
    changed = a_shoot(spec={"hibernation": {"schedules": [{"start": "daily"}]}, "purpose": "evaluation"})
    validate(changed, stored)


def test_a_volume_of_a_size_that_was_stored_before_may_stay() -> None:
    stored = a_shoot(spec={"provider": {"workers": [WORKER | {"volume": {"size": "20G"}}]}})
    validate(merged(stored, {"spec": {"purpose": "testing"}}), stored)
    validate(a_shoot(spec={"provider": {"workers": [WORKER | {"volume": {"size": "20Gi"}}]}}), stored)


def test_a_pool_of_more_machines_than_gardener_can_count_may_stay_where_it_was_stored_before() -> None:
    stored = a_shoot(spec={"provider": {"workers": [WORKER | {"maximum": 2**31}]}})
    validate(merged(stored, {"spec": {"provider": {"workers": [WORKER | {"maximum": 2**31, "minimum": 2}]}}}), stored)


def test_a_tolerated_key_may_have_several_values() -> None:
    validate(a_shoot(spec={"tolerations": [{"key": "a", "value": "b"}, {"key": "a", "value": "c"}]}), None)


def test_a_version_that_yaml_made_a_number_is_told_to_be_quoted() -> None:
    message = problems_of(a_shoot(spec={"kubernetes": {"version": 1.34}}))["spec.kubernetes.version"]
    assert "put it in quotes" in message


def test_all_problems_are_told_at_once() -> None:
    fields = problems_of(a_shoot(spec={"region": 1, "purpose": "fun", "provider": {"workers": [{"name": 1}]}}))
    pool = "spec.provider.workers[0]"
    assert set(fields) == {"spec.region", "spec.purpose", f"{pool}.name", f"{pool}.machine.type"}


def test_ranges_are_of_the_families_that_apply() -> None:
    ranges = {"nodes": "fd01::/64", "pods": "fd02::/64", "services": "fd03::/112", "ipFamilies": ["IPv6"]}
    validate(a_shoot(spec={"networking": ranges}), None)
    validate(a_shoot(spec={"networking": {"nodes": "fd01::/64", "ipFamilies": ["IPv4", "IPv6"]}}), None)


@pytest.mark.parametrize("spec", ["x", [], 5])
def test_a_spec_is_a_mapping(spec: Any) -> None:
    assert "spec" in problems_of({**a_shoot(), "spec": spec})


def test_a_mapping_that_is_absent_is_noted_by_the_fields_that_it_needs() -> None:
    found = problems_of({**a_shoot(), "spec": None})
    assert set(found) == {"spec.region", "spec.cloudProfile.name", "spec.provider.type"}
    errors = FieldErrors()
    manifest = FieldCursor.root({}, errors)
    manifest.section("data", required=True).text("key")
    assert errors.problems == (FieldProblem("data", "is needed: a mapping"),)
    manifest.section("data", required=True).text("name", required=True)
    assert errors.problems == (FieldProblem("data.name", "is needed: a string"),)
    manifest.section("data", required=True)
    assert errors.problems == (FieldProblem("data.name", "is needed: a string"),)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"schedulerName": "other"}, "spec.schedulerName"),
        ({"schedulerName": None}, "spec.schedulerName"),
        ({"region": "eu-central-1"}, "spec.region"),
        ({"provider": {"type": "gcp"}}, "spec.provider.type"),
        ({"exposureClassName": "other"}, "spec.exposureClassName"),
        ({"exposureClassName": None}, "spec.exposureClassName"),
        ({"seedName": "there"}, "spec.seedName"),
    ],
)
def test_some_fields_stay_for_ever(change: Document, field: str) -> None:
    old = a_shoot(spec={"schedulerName": "mine", "exposureClassName": "internet"})
    validate(old, old)
    assert field in problems_of(merged(old, {"spec": change}), old)


def test_an_exposure_class_is_named_when_the_shoot_is_made_or_never() -> None:
    assert "spec.exposureClassName" in problems_of(a_shoot(spec={"exposureClassName": "internet"}), a_shoot())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"seedName": "elsewhere"}, "spec.seedName"),
        ({"seedName": None}, "spec.seedName"),
        ({"networking": {"pods": "100.128.0.0/11"}}, "spec.networking.pods"),
        ({"networking": None}, "spec.networking"),
        ({"networking": {"services": None}}, "spec.networking.services"),
        ({"dns": {"domain": "other.example.com"}}, "spec.dns.domain"),
        ({"dns": None}, "spec.dns"),
        ({"controlPlane": None}, "spec.controlPlane.highAvailability.failureTolerance.type"),
    ],
)
def test_others_stay_once_the_shoot_is_placed(change: Document, field: str) -> None:
    zonal = {"highAvailability": {"failureTolerance": {"type": "zone"}}}
    placed = a_shoot(spec={"seedName": "here", "controlPlane": zonal, "dns": {"domain": "a.example.com"}})
    validate(placed, placed)
    validate(placed, a_shoot(spec={"seedName": "here"}))
    assert field in problems_of(merged(placed, {"spec": change}), placed)


def test_a_pending_shoot_may_change_its_ranges() -> None:
    validate(a_shoot(spec={"networking": {"pods": "100.128.0.0/11"}}), a_shoot())


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ("x", "status"),
        ({"conditions": {}}, "status.conditions"),
        ({"conditions": [{"type": "A", "status": "Good"}]}, "status.conditions[0].status"),
        ({"conditions": [{"status": "True"}]}, "status.conditions[0].type"),
        ({"constraints": [{"type": "A", "status": True}]}, "status.constraints[0].status"),
        (
            {"lastOperation": {"type": "Create", "state": "Processing", "progress": 101}},
            "status.lastOperation.progress",
        ),
        ({"lastOperation": {"type": 5, "state": "Processing"}}, "status.lastOperation.type"),
        ({"lastErrors": [{"codes": "E"}]}, "status.lastErrors[0].codes"),
        ({"observedGeneration": "1"}, "status.observedGeneration"),
        ({"seedName": []}, "status.seedName"),
        ({"networking": {"pods": "10.0.0.0/8"}}, "status.networking.pods"),
    ],
)
def test_a_report_of_the_wrong_type_is_refused(status: Any, field: str) -> None:
    assert field in problems_of({**a_shoot(), "status": status}, a_shoot())
