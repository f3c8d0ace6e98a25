"""What is said about a manifest, in each of the three validations, and given what is stored."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.field_validation import (
    STATUS_IGNORED,
    Review,
    manifest_review,
    patch_review,
    validation_of,
)
from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import key_of_document
from gardenbus.common.api.field_validation import FieldValidation, parse_field_validation
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest, InvalidResource
from tests.support.builders import a_managed_seed, a_seed, a_shoot, merged
from tests.support.placements import a_crp

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
STRICT, WARN, IGNORE = FieldValidation.STRICT, FieldValidation.WARN, FieldValidation.IGNORE
MISSPELT = {"purpos": "testing"}


def reviewed(given: Document, validation: FieldValidation = STRICT) -> Review:
    return manifest_review(given, APOLLO, validation)


def test_an_unknown_field_is_refused_warned_of_or_ignored() -> None:
    given = a_shoot(spec=MISSPELT)
    with pytest.raises(InvalidResource) as rejected:
        reviewed(given)(None)
    assert [problem.field for problem in rejected.value.problems] == ["spec.purpos"]
    assert rejected.value.message.startswith("shoot garden-dev/apollo is invalid: spec.purpos: ")
    assert reviewed(given, WARN)(None) == ("spec.purpos: is no field of a Shoot; did you mean `purpose`?",)
    assert reviewed(given, IGNORE)(None) == ()


def test_what_is_applied_to_an_object_that_goes_is_warned_of() -> None:
    leaving = a_shoot(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    for given, others in ((a_shoot(), 0), (a_shoot(spec={"monitoring": {}}), 1)):
        warnings = reviewed(given)(leaving)
        assert [warning.partition(":")[0] for warning in warnings][:1] == ["metadata.deletionTimestamp"]
        assert len(warnings) == 1 + others
        assert len(reviewed(given)(a_shoot())) == len(reviewed(given)(None)) == others


def test_what_is_stored_already_is_no_reason_to_refuse_a_change() -> None:
    stored = a_shoot(spec=MISSPELT)
    (warning,) = reviewed(a_shoot(spec={**MISSPELT, "purpose": "testing"}))(stored)
    assert "spec.purpos" in warning
    with pytest.raises(InvalidResource):
        reviewed(a_shoot(spec={"purpos": "another"}))(stored)


def test_a_patch_is_reviewed_as_a_manifest_and_takes_away_what_is_unknown() -> None:
    stored = a_shoot(spec=MISSPELT)
    assert patch_review({"spec": {"purpos": None}}, APOLLO, STRICT)(stored) == ()
    assert patch_review({"metadata": {"finalizers": []}}, APOLLO, STRICT)(stored) == ()
    with pytest.raises(InvalidResource):
        patch_review({"spec": {"purpoze": "testing"}}, APOLLO, STRICT)(stored)
    (warning,) = patch_review({"spec": {"monitoring": {"alerting": {}}}}, APOLLO, STRICT)(stored)
    assert warning.startswith("spec.monitoring: nothing acts on it")


@pytest.mark.parametrize(
    ("spec", "reported"),
    [
        ({"monitoring": {"alerting": {}}}, "spec.monitoring: nothing acts on it"),
        ({"maintenance": {"autoRotation": {}}}, "spec.maintenance.autoRotation: nothing acts on it"),
        ({"seedSelector": {"providerTypes": ["aws"]}}, "spec.seedSelector.providerTypes: nothing acts on it"),
        ({"cloudProfile": None, "cloudProfileName": "aws"}, "spec.cloudProfileName: is deprecated"),
        ({"secretBindingName": "aws"}, "spec.secretBindingName: is deprecated"),
    ],
)
@pytest.mark.parametrize("validation", list(FieldValidation))
def test_what_has_no_effect_is_taken_with_a_warning(
    spec: dict[str, Any], reported: str, validation: FieldValidation
) -> None:
    (warning,) = reviewed(a_shoot(spec=spec), validation)(None)
    assert warning.startswith(reported)


IDLE = {"volume": {"minimumSize": "20Gi"}}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (a_seed(spec=IDLE), "spec.volume"),
        (a_seed(spec={"settings": {"shootDNS": {"enabled": True}}}), "spec.settings.shootDNS"),
        (
            a_managed_seed(spec={"gardenlet": {"config": {"seedConfig": {"spec": IDLE}}}}),
            "spec.gardenlet.config.seedConfig.spec.volume",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else each["kind"],
)
def test_what_has_no_effect_of_a_seed_is_warned_of_in_its_templates_too(document: Document, path: str) -> None:
    assert any(warning.startswith(f"{path}: nothing acts on it") for warning in reviewed(document)(None))


PROFILE: Document = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "aws"}}
DEPLOYMENT: Document = {
    "apiVersion": "core.gardener.cloud/v1",
    "kind": "ControllerDeployment",
    "metadata": {"name": "dns"},
}
SLOW: Document = {"name": "slow", "machineControllerManager": {"machineCreationTimeout": "5m"}}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({**PROFILE, "spec": {"machineTypes": [{"name": "small"}, SLOW, SLOW]}}, "spec.machineTypes[1].machineContr"),
        ({**PROFILE, "spec": {"caBundle": "-----BEGIN CERTIFICATE-----"}}, "spec.caBundle"),
        ({**DEPLOYMENT, "helm": {"rawChart": "aGVsbQ=="}}, "helm"),
        ({**DEPLOYMENT, "injectGardenKubeconfig": True}, "injectGardenKubeconfig"),
        ({**DEPLOYMENT, "apiVersion": "core.gardener.cloud/v1beta1", "providerConfig": {"chart": "aGk="}}, "providerC"),
        ({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "ExposureClass", "handler": "internet"}, "handler"),
        ({**a_seed(spec={"volume": {"minimumSize": "20Gi"}}), "status": None}, "spec.volume"),
    ],
    ids=lambda each: each if isinstance(each, str) else each["kind"],
)
def test_what_has_no_effect_is_warned_of_once_in_lists_and_beside_the_spec_too(document: Document, path: str) -> None:
    (warning,) = reviewed(document)(None)
    assert warning.startswith(path)
    assert "nothing acts on it" in warning


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"strategy": {"deleteStrategy": {"propagationPolicy": "Abandon"}}}, ""),
        ({"strategy": {"reportBackStrategy": {"type": "Mirror"}}}, "reportBackStrategy.type"),
        ({"strategy": {"reportBackStrategy": {"type": "Disabled"}}}, ""),
        ({"statusReportingScope": "NamespaceAccessible"}, "statusReportingScope"),
        ({"statusReportingScope": "ClusterScopeOnly"}, ""),
    ],
)
def test_what_a_placement_requests_and_is_not_done_is_warned_of(spec: dict[str, Any], path: str) -> None:
    warnings = reviewed(a_crp(spec=spec))(None)
    assert [path in warning for warning in warnings] == ([True] if path else [])


@pytest.mark.parametrize(
    ("annotation", "value", "reported"),
    [
        ("shoot.gardener.cloud/tasks", "deployInfrastructure", "a reconciliation has no tasks"),
        ("shoot.gardener.cloud/ignore-alerts", "true", "no alerts are sent"),
        ("shoot.gardener.cloud/ignore-alerts", "false", ""),
        ("shoot.gardener.cloud/infrastructure-cleanup-wait-period-seconds", "0", "has such a step here"),
        ("gardener.cloud/operation", "rotate-credentials-start", "no credentials are rotated"),
        ("gardener.cloud/operation", "reconcile", ""),
        ("gardener.cloud/operation", "maintain", ""),
        ("maintenance.gardener.cloud/operation", "reconcile; rotate-ssh-keypair", "in its window the shoot is"),
        ("maintenance.gardener.cloud/operation", "reconcile", ""),
    ],
)
def test_operations_and_tasks_that_nothing_acts_on_are_warned_of(annotation: str, value: str, reported: str) -> None:
    annotated = {"metadata": {"annotations": {annotation: value}}}
    shoot = merged(a_shoot(), annotated)
    for warnings in (reviewed(shoot)(None), patch_review(annotated, APOLLO, STRICT)(a_shoot())):
        assert [reported in warning for warning in warnings] == ([True] if reported else [])
    read = merged(shoot, {"metadata": {"resourceVersion": "5", "uid": "u"}})
    assert reviewed(read)(read) == ()


@pytest.mark.parametrize(
    ("document", "operation", "reported"),
    [
        (a_seed(), "renew-garden-access-secrets", "nothing acts on it: "),
        (a_seed(), "renew-workload-identity-tokens", "nothing acts on it: "),
        (a_seed(), "renew", ""),
        (a_seed(), "renew-kubeconfig", ""),
        (a_seed(), "reconcile", ""),
        (a_managed_seed(), "renew-kubeconfig", "nothing acts on it: its Seed has the certificate"),
        (a_managed_seed(), "reconcile", ""),
    ],
)
def test_operations_of_seeds_that_nothing_acts_on_are_warned_of(
    document: Document, operation: str, reported: str
) -> None:
    annotated = {"metadata": {"annotations": {"gardener.cloud/operation": operation}}}
    key, given = key_of_document(document), merged(document, annotated)
    for warnings in (manifest_review(given, key, STRICT)(None), patch_review(annotated, key, STRICT)(document)):
        found = [
            warning for warning in warnings if warning.startswith("metadata.annotations[gardener.cloud/operation]")
        ]
        assert [reported in warning for warning in found] == ([True] if reported else [])


def test_a_round_trip_is_silent_and_applying_a_file_again_is_not() -> None:
    stored = a_shoot(
        metadata={"resourceVersion": "5", "uid": "u"}, spec={"monitoring": {"alerting": {}}}, status={"seedName": "a"}
    )
    assert reviewed(stored)(stored) == ()
    without_version = a_shoot(spec={"monitoring": {"alerting": {}}})
    assert len(reviewed(without_version)(stored)) == 1
    assert reviewed({**stored, "status": {"seedName": "b"}})(stored) == (STATUS_IGNORED,)
    assert reviewed(a_shoot(status={"seedName": "a"}))(None) == (STATUS_IGNORED,)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("operator.gardener.cloud/v1alpha1", "Garden"),
        ("resources.gardener.cloud/v1alpha1", "ManagedResource"),
        ("placement.kubernetes-fleet.io/v1beta1", "ClusterStagedUpdateRun"),
        ("v1", "Foo"),
    ],
)
def test_a_kind_that_nothing_acts_on_says_so(api_version: str, kind: str) -> None:
    given = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "garden-dev"}}
    assert reviewed(given)(None) == (f"kind {kind} is stored; nothing acts on it",)


@pytest.mark.parametrize("kind", ["Deployment", "ControllerRevision"])
def test_a_kind_that_is_carried_to_clusters_says_nothing(kind: str) -> None:
    given = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x", "namespace": "shop"}, "spec": {"any": 1}}
    assert reviewed(given)(None) == ()


def test_a_request_says_in_a_header_how_strictly_it_is_validated() -> None:
    assert validation_of({}, STRICT) is STRICT
    assert validation_of({"Gardenbus-Validate": "warn"}, STRICT) is WARN
    assert validation_of({"Gardenbus-Validate": "false"}, STRICT) is IGNORE
    with pytest.raises(BadRequest, match="Gardenbus-Validate: must be strict, warn or ignore, not 'loose'"):
        validation_of({"Gardenbus-Validate": "loose"}, STRICT)
    assert parse_field_validation("true", name="--validate") is STRICT
