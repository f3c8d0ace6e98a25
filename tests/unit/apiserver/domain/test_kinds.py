"""Words, groups and scopes of kinds."""

from typing import Any

import pytest

from gardenbus.common.api.kinds import (
    KINDS,
    PLACEMENT,
    by_qualified_word,
    by_word,
    in_stored_version,
    resolve,
    understood_kinds,
)
from gardenbus.common.errors import Unsupported


def test_the_kinds_of_the_contract_are_understood() -> None:
    assert {spec.kind for spec in understood_kinds()} == {
        "Shoot",
        "Seed",
        "CloudProfile",
        "NamespacedCloudProfile",
        "Project",
        "Namespace",
        "ConfigMap",
        "Secret",
        "Lease",
        "CertificateSigningRequest",
        "ExposureClass",
        "ShootState",
        "Event",
        "ManagedSeed",
        "ManagedSeedSet",
        "SeedAutoscaler",
        "MemberCluster",
        "ClusterResourceEnvelope",
        "ResourceEnvelope",
        "ClusterResourceOverride",
        "ResourceOverride",
        "ClusterResourceOverrideSnapshot",
        "ResourceOverrideSnapshot",
        "ClusterResourcePlacement",
        "ResourcePlacement",
        "ClusterSchedulingPolicySnapshot",
        "SchedulingPolicySnapshot",
        "ClusterResourceSnapshot",
        "ResourceSnapshot",
        "ClusterResourceBinding",
        "ResourceBinding",
        "ClusterResourcePlacementEviction",
        "ClusterResourcePlacementDisruptionBudget",
        "Work",
    }


@pytest.mark.parametrize("word", ["shoot", "shoots", "Shoot", "SHOOTS"])
def test_a_kind_is_found_by_any_of_its_words(word: str) -> None:
    assert by_word(word).kind == "Shoot"


@pytest.mark.parametrize(
    ("word", "kind"),
    [("cp", "CloudProfile"), ("mss", "ManagedSeedSet"), ("cm", "ConfigMap"), ("exposureclasses", "ExposureClass")],
)
def test_short_names_and_plurals_are_found(word: str, kind: str) -> None:
    assert by_word(word).kind == kind


def test_a_mistyped_word_is_answered_with_what_may_have_been_meant() -> None:
    with pytest.raises(Unsupported, match="did you mean shoots"):
        by_word("shoosts")


def test_a_stored_kind_that_nobody_knows_is_found_by_its_words() -> None:
    with pytest.raises(Unsupported):
        by_word("etcds")
    assert by_word("etcds", ["etcd"]).singular == "etcd"


def test_a_kind_that_is_not_understood_is_taken_from_a_known_group() -> None:
    quota = resolve("core.gardener.cloud/v1beta1", "Quota")
    assert (quota.understood, quota.namespaced) == (False, True)
    assert resolve("druid.gardener.cloud/v1alpha1", "Etcd").namespaced is None
    assert resolve("v1", "PersistentVolume").namespaced is False


@pytest.mark.parametrize(
    ("api_version", "kind", "field"),
    [
        ("apps.example/v1", "Deployment", "apiVersion"),
        ("events.k8s.io/v1", "Event", "apiVersion"),
        ("example.com/v1", "Shoot", "apiVersion"),
        ("nonsense.gardener.cloud/v1", "Thing", "apiVersion"),
        ("core.gardener.cloud/v1alpha1", "Shoot", "apiVersion"),
        ("extensions.gardener.cloud/v1alpha1", "Shoot", "apiVersion"),
        ("core.gardener.cloud/v1beta1", "shoot", "kind"),
        ("core.gardener.cloud", "Shoot", "apiVersion"),
        ("v1", "a.b*>", "kind"),
        ("gardenlet.config.gardener.cloud/v1alpha1", "GardenletConfiguration", "apiVersion"),
    ],
)
def test_what_is_not_served_is_refused_naming_the_field(api_version: str, kind: str, field: str) -> None:
    with pytest.raises(Unsupported, match=f"^{field}: "):
        resolve(api_version, kind)


@pytest.mark.parametrize(
    ("api_version", "kind", "namespaced"),
    [
        ("apps/v1", "Deployment", True),
        ("batch/v1", "CronJob", True),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", False),
        ("networking.k8s.io/v1", "NetworkPolicy", True),
        ("policy/v1", "PodDisruptionBudget", True),
        ("autoscaling/v2", "HorizontalPodAutoscaler", True),
        ("autoscaling/v1", "HorizontalPodAutoscaler", True),
        ("storage.k8s.io/v1", "CSIDriver", None),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", False),
    ],
)
def test_what_placements_take_along_is_kept_without_being_understood(
    api_version: str, kind: str, namespaced: bool | None
) -> None:
    spec = resolve(api_version, kind)
    assert (spec.api_version, spec.understood, spec.namespaced) == (api_version, False, namespaced)


@pytest.mark.parametrize(("kind", "meant"), [("Shot", "Shoot"), ("Seeds", "Seed"), ("CloudProfil", "CloudProfile")])
def test_a_slip_of_the_pen_is_no_kind_of_its_own(kind: str, meant: str) -> None:
    with pytest.raises(Unsupported, match=rf"^kind: {kind} of .* is not known here; did you mean {meant}\?$"):
        resolve("core.gardener.cloud/v1beta1", kind)


@pytest.mark.parametrize(
    "kind", ["Bastion", "BackupBucket", "SecretBinding", "InternalSecret", "ControllerRegistration"]
)
def test_other_kinds_of_gardener_are_no_slips(kind: str) -> None:
    assert resolve("core.gardener.cloud/v1beta1", kind).kind == kind


def test_an_unknown_group_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(Unsupported, match=r"'apps\.example' is not .*core.*placement\.kubernetes.*apps, batch"):
        resolve("apps.example/v1", "Deployment")


@pytest.mark.parametrize(
    ("kind", "group"), [("a SeedAutoscaler", "seedmanagement.gardener.cloud/v1alpha1"), ("an ExposureClass", "core.")]
)
def test_a_kind_that_is_in_another_group_is_named_with_it(kind: str, group: str) -> None:
    with pytest.raises(Unsupported, match=f"for {kind} write {group}"):
        resolve("autoscaling.gardener.example/v1", kind.split()[1])


@pytest.mark.parametrize(
    ("kind", "served", "stored"),
    [
        ("MemberCluster", "cluster.kubernetes-fleet.io/v1", "cluster.kubernetes-fleet.io/v1beta1"),
        ("ClusterResourcePlacement", f"{PLACEMENT}/v1", f"{PLACEMENT}/v1beta1"),
        ("ResourceOverride", f"{PLACEMENT}/v1", f"{PLACEMENT}/v1beta1"),
        ("ResourceOverride", f"{PLACEMENT}/v1alpha1", f"{PLACEMENT}/v1beta1"),
        ("ClusterResourcePlacementEviction", f"{PLACEMENT}/v1alpha1", f"{PLACEMENT}/v1beta1"),
        ("ClusterResourcePlacementEviction", f"{PLACEMENT}/v1", f"{PLACEMENT}/v1"),
        ("Shoot", "core.gardener.cloud/v1", "core.gardener.cloud/v1"),
        (["Shoot"], {"a": 1}, {"a": 1}),
    ],
)
def test_a_version_that_is_served_too_is_stored_in_that_of_the_kind(kind: Any, served: Any, stored: Any) -> None:
    manifest = {"apiVersion": served, "kind": kind, "spec": {"a": 1}}
    assert in_stored_version(manifest) == {**manifest, "apiVersion": stored}


def test_a_word_with_a_version_that_is_served_means_the_kind_in_it() -> None:
    assert by_qualified_word("crp.v1.placement.kubernetes-fleet.io").api_version == f"{PLACEMENT}/v1"
    assert by_qualified_word("crp.placement.kubernetes-fleet.io").api_version == f"{PLACEMENT}/v1beta1"
    with pytest.raises(Unsupported, match="did you mean clusterresourceplacementevictions"):
        by_qualified_word("crpe.v1.placement.kubernetes-fleet.io")


def test_no_word_means_two_kinds() -> None:
    words = [word for spec in KINDS.values() for word in (spec.singular, spec.plural, *spec.short_names)]
    assert sorted(words) == sorted(set(words))


def test_each_singular_is_the_lower_case_kind() -> None:
    assert all(singular == spec.kind.lower() for singular, spec in KINDS.items())


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("shoots.core.gardener.cloud", "Shoot"),
        ("shoot.v1beta1.core.gardener.cloud", "Shoot"),
        ("Seed.core.gardener.cloud", "Seed"),
        ("crp.placement.kubernetes-fleet.io", "ClusterResourcePlacement"),
        ("events.v1.", "Event"),
        ("deploy.apps", "Deployment"),
        ("deployments.v1beta2.apps", "Deployment"),
        ("namespaces", "Namespace"),
    ],
)
def test_a_kind_is_found_with_its_group_and_version_as_kubectl_writes_them(word: str, kind: str) -> None:
    assert by_qualified_word(word).kind == kind


@pytest.mark.parametrize("word", ["shoots.apps", "shoots.v1.core.gardener.cloud", "seed.gardener.cloud", "seed."])
def test_a_kind_with_another_group_or_version_is_answered_with_its_own(word: str) -> None:
    with pytest.raises(Unsupported, match=r"did you mean (shoots|seeds)\.core\.gardener\.cloud"):
        by_qualified_word(word)


@pytest.mark.parametrize("word", ["pods", "pod", "po", "nodes", "no", "x"])
def test_what_is_of_one_cluster_alone_is_no_resource_type_and_resembles_none(word: str):
    with pytest.raises(
        Unsupported, match=r"the server doesn't have a resource type .*; `gardenbus api-resources` lists"
    ) as reported:
        by_word(word)
    assert "did you mean" not in reported.value.message


@pytest.mark.parametrize("word", ["placements", "placement"])
def test_a_word_that_kinds_end_in_is_answered_with_these(word: str):
    with pytest.raises(Unsupported, match=r"did you mean clusterresourceplacements or resourceplacements\?"):
        by_word(word)


@pytest.mark.parametrize(
    ("word", "meant"), [("shots", "shoots"), ("sed", "seed"), ("sheds", "seeds"), ("deployemnts", "deployments")]
)
def test_a_slip_is_answered_with_the_word_that_was_meant(word: str, meant: str):
    with pytest.raises(Unsupported, match=rf"did you mean {meant}\?$"):
        by_word(word)
