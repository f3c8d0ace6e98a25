"""Resource quotas, phases and stages: Gardener's cases."""

from gardenbus.common.api.configuration.controller_manager import ProjectQuota
from gardenbus.common.api.owners import controller_reference
from gardenbus.common.api.selectors import LabelSelector
from gardenbus.controllermanager.domain.projects import (
    accepted,
    quota_of,
    resource_quota,
    stages_of,
    with_phase,
)
from tests.support.builders import a_project

PROJECT = a_project("dev", metadata={"uid": "u-1"})
BARE = a_project("dev", status={"phase": None})
SMALL = ProjectQuota(
    config={"metadata": {"labels": {"bar": "baz"}, "annotations": {"foo": "bar"}}, "spec": {"hard": {"a": "1"}}},
    project_selector=LabelSelector.of({"size": "small"}),
)
ANY = ProjectQuota(config={"spec": {"hard": {"foo": "1", "bar": "2"}}})


def test_the_first_quota_that_matches_is_the_projects() -> None:
    assert quota_of({"size": "small"}, (SMALL, ANY)) is SMALL
    assert quota_of({"size": "large"}, (SMALL, ANY)) is ANY
    assert quota_of({"size": "small"}, (ANY, SMALL)) is ANY
    assert quota_of({"size": "large"}, (SMALL,)) is None
    assert quota_of({}, ()) is None


def test_a_new_resource_quota_has_labels_annotations_and_owner() -> None:
    document = resource_quota(PROJECT, "garden-dev", SMALL, None)
    assert document == {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {
            "name": "gardener",
            "namespace": "garden-dev",
            "labels": {"bar": "baz"},
            "annotations": {"foo": "bar"},
            "ownerReferences": [controller_reference(PROJECT)],
        },
        "spec": {"hard": {"a": "1"}},
    }


def test_hard_values_that_are_there_are_kept_and_those_that_are_not_configured_go() -> None:
    stored = resource_quota(PROJECT, "garden-dev", ANY, None)
    stored["spec"]["hard"] = {"foo": "1000", "bar": "2", "left": "7"}
    stored["metadata"]["labels"] = {"own": "x"}
    again = resource_quota(PROJECT, "garden-dev", ANY, stored)
    assert again["spec"]["hard"] == {"foo": "1000", "bar": "2"}
    assert again["metadata"]["labels"] == {"own": "x"}
    assert resource_quota(PROJECT, "garden-dev", ANY, again) == again


def test_a_project_is_accepted_once() -> None:
    once = accepted(BARE, 1)
    assert once["metadata"]["finalizers"] == ["gardener"]
    assert once["status"]["phase"] == "Pending"
    assert accepted(once, 1) == once
    assert accepted(with_phase(once, "Failed", 1), 2)["status"]["phase"] == "Failed"


def test_who_refers_leaves_before_what_is_referred_to() -> None:
    kinds = ["secret", "widget", "secretbinding", "quota", "resourcequota", "configmap"]
    assert stages_of(kinds) == (["secretbinding"], ["resourcequota", "widget"], ["configmap", "quota", "secret"])
