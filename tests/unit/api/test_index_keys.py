from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.index_keys import IndexKeys, effects_of, index_keys_of
from gardenbus.common.api.keys import ObjectKey
from tests.support.builders import (
    a_cloudprofile,
    a_condition,
    a_managed_seed,
    a_namespaced_cloudprofile,
    a_project,
    a_region_configmap,
    a_seed,
    a_shoot,
    merged,
)


def test_a_shoot_waits_for_its_scheduler_or_ours() -> None:
    assert index_keys_of(a_shoot()).scheduler_name == "default-scheduler"
    assert index_keys_of(a_shoot(spec={"schedulerName": ""})).scheduler_name == "default-scheduler"
    assert index_keys_of(a_shoot(spec={"schedulerName": "mine"})).scheduler_name == "mine"


def test_a_shoot_that_hosts_its_own_control_plane_waits_for_none() -> None:
    hosting = a_shoot(spec={"provider": {"workers": [{"name": "own", "controlPlane": {}}]}})
    assert index_keys_of(hosting).scheduler_name == ""
    assert index_keys_of(a_shoot(spec={"provider": {"workers": "none"}})).scheduler_name == "default-scheduler"


@pytest.mark.parametrize(
    ("spec", "reference"),
    [
        ({"cloudProfile": {"name": "a"}}, "cloudprofile:_:a"),
        ({"cloudProfile": {"kind": "CloudProfile", "name": "a"}}, "cloudprofile:_:a"),
        ({"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "a"}}, "namespacedcloudprofile:garden-dev:a"),
        ({"cloudProfile": None, "cloudProfileName": "a"}, "cloudprofile:_:a"),
        ({"exposureClassName": "a"}, "exposureclass:_:a"),
    ],
)
def test_a_shoot_refers_to_what_must_outlive_it(spec: Document, reference: str) -> None:
    references = index_keys_of(a_shoot(spec=spec)).references
    assert references[0] == "namespace:_:garden-dev"
    assert reference in references


def test_a_shoot_without_a_profile_refers_to_its_namespace_alone() -> None:
    assert index_keys_of(a_shoot(spec={"cloudProfile": None})).references == ("namespace:_:garden-dev",)


@pytest.mark.parametrize(
    ("shoots", "capacity"), [("250", "250"), ("1500m", "2"), (0, "0"), ("-1", "0"), ("1k", "1000"), (None, "")]
)
def test_a_seeds_capacity_is_a_whole_number_or_none(shoots: Any, capacity: str) -> None:
    assert index_keys_of(a_seed(shoots=shoots)).capacity == capacity


def test_claims_say_what_only_one_object_may_have() -> None:
    managed_seed: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "a", "namespace": "garden"},
        "spec": {"shoot": {"name": "apollo"}},
    }
    assert index_keys_of(a_project("dev")).claims == ("namespace/garden-dev",)
    assert index_keys_of(a_project("dev", spec={"namespace": None})).claims == ()
    assert index_keys_of(managed_seed).claims == ("managedseed-shoot/garden/apollo",)
    assert index_keys_of(merged(managed_seed, {"spec": {"shoot": None}})).claims == ()
    autoscaler: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "SeedAutoscaler",
        "metadata": {"name": "a", "namespace": "garden"},
        "spec": {"scaleTargetRef": {"name": "aws"}},
    }
    assert index_keys_of(autoscaler).claims == ("seedautoscaler-target/garden/aws",)
    assert index_keys_of(merged(autoscaler, {"spec": {"scaleTargetRef": None}})).claims == ()


def test_a_managed_seed_refers_to_its_shoot_first_by_which_it_follows_it() -> None:
    managed = a_managed_seed("a", "apollo")
    assert index_keys_of(managed).references[0] == ObjectKey("shoot", "garden", "apollo").stored
    assert index_keys_of(merged(managed, {"spec": {"shoot": None}})).references == ()


@pytest.mark.parametrize(("annotation", "owner"), [("garden/aws", "garden/aws"), ("", ""), (None, "")])
def test_a_seeds_removal_owner_is_its_annotation(annotation: str | None, owner: str) -> None:
    assert index_keys_of(a_seed(metadata={"annotations": {REMOVAL_ANNOTATION: annotation}})).removal_owner == owner


def test_a_namespaced_profile_refers_to_its_parent() -> None:
    assert index_keys_of(a_namespaced_cloudprofile()).references == ("cloudprofile:_:aws",)


@pytest.mark.parametrize(
    "document",
    [a_shoot(), a_seed(), a_project(), a_namespaced_cloudprofile(), a_cloudprofile(), a_region_configmap()],
    ids=lambda document: str(document["kind"]),
)
def test_owners_are_read_from_every_kind(document: Document) -> None:
    owners = [{"uid": "u1", "name": "a"}, {"name": "without uid"}, {"uid": "u2"}, {"uid": "*"}, {"uid": "a\nb"}]
    assert index_keys_of(merged(document, {"metadata": {"ownerReferences": owners}})).owners == ("u1", "u2")
    assert index_keys_of(document).owners == ()


def test_a_plain_object_is_indexed_by_nothing() -> None:
    assert index_keys_of({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}) == IndexKeys()


UNREADY = {"status": {"conditions": [a_condition("GardenletReady", "Unknown")]}}


@pytest.mark.parametrize(
    ("old", "new", "outdates_decisions", "unblocks"),
    [
        (None, a_seed(), True, True),
        (None, a_seed(ready=False), True, False),
        (a_seed(ready=False), a_seed(), True, True),
        (a_seed(), merged(a_seed(), UNREADY), True, True),
        (a_seed(), None, False, True),
        (merged(a_seed(), UNREADY), None, False, False),
        (a_seed(shoots=1), a_seed(shoots=2), False, True),
        (a_seed(shoots=2), a_seed(shoots=1), False, False),
        (a_seed(shoots=2), a_seed(shoots=None), False, True),
        (a_seed(), a_seed(status={"x": 1}), False, False),
    ],
)
def test_what_a_seed_means_to_pending_shoots(
    old: Document | None, new: Document | None, outdates_decisions: bool, unblocks: bool
) -> None:
    assert effects_of("seed", old, new) == (outdates_decisions, unblocks)


@pytest.mark.parametrize("changes", [{"spec": {"x": 1}}, {"metadata": {"labels": {"x": "y"}}}, {"data": {"x": "y"}}])
def test_profiles_projects_and_region_configmaps_unblock_when_what_scheduling_reads_changes(changes: Document) -> None:
    for document in (a_cloudprofile(), a_namespaced_cloudprofile(), a_project(), a_region_configmap()):
        kind = str(document["kind"]).lower()
        assert effects_of(kind, document, merged(document, changes)).unblocks
        assert not effects_of(kind, document, merged(document, {"status": {"phase": "Ready", "x": 1}})).unblocks
        assert effects_of(kind, None, document).unblocks
        assert not effects_of(kind, document, document).unblocks


def test_other_configmaps_and_kinds_mean_nothing() -> None:
    plain = a_region_configmap(metadata={"labels": None})
    assert effects_of("configmap", None, plain) == (False, False)
    assert effects_of("configmap", a_region_configmap(), plain).unblocks, "one that no longer counts changes distances"
    assert effects_of("shoot", None, a_shoot()) == (False, False)
