"""Namespaces of projects: Gardener's cases of its project reconciler."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.owners import controller_reference
from gardenbus.controllermanager.domain.project_namespaces import (
    AdoptNamespace,
    CreateNamespace,
    EmptyNamespace,
    KeepNamespace,
    MarkNamespace,
    NothingToRelease,
    RejectNamespace,
    ReleaseNamespace,
    plan_namespace,
    plan_release,
)
from tests.support.builders import a_project, merged

PROJECT = a_project("dev", metadata={"uid": "u-1"})
LABELS = {"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev"}
OWN = {"namespace.gardener.cloud/project": "u-1"}
CREATED = "namespace.gardener.cloud/created-by-project-controller"
KEEP = "namespace.gardener.cloud/keep-after-project-deletion"


def a_namespace(name: str = "garden-dev", **metadata: Any) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}


def test_a_namespace_that_is_missing_is_made_with_labels_owner_and_the_mark_of_who_made_it() -> None:
    plan = plan_namespace(PROJECT, None)
    assert isinstance(plan, CreateNamespace)
    metadata = plan.namespace["metadata"]
    assert metadata["name"] == "garden-dev"
    assert metadata["labels"] == LABELS
    assert metadata["annotations"] == {**OWN, CREATED: "true"}
    assert [(each["kind"], each["name"], each["uid"]) for each in metadata["ownerReferences"]] == [
        ("Project", "dev", "u-1")
    ]


def test_the_garden_is_never_emptied_with_its_project() -> None:
    plan = plan_namespace(a_project("garden", "garden", metadata={"uid": "u-1"}), None)
    assert isinstance(plan, CreateNamespace)
    assert plan.namespace["metadata"]["annotations"][KEEP] == "true"


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"gardener.cloud/role": "project"},
        {"project.gardener.cloud/name": "dev"},
        LABELS | {"project.gardener.cloud/name": "another"},
        LABELS | {"gardener.cloud/role": "shoot"},
    ],
    ids=str,
)
def test_a_namespace_without_the_projects_labels_is_not_taken(labels: dict[str, str]) -> None:
    plan = plan_namespace(PROJECT, a_namespace(labels=labels))
    assert isinstance(plan, RejectNamespace)
    assert "project.gardener.cloud/name=dev" in plan.message


def test_a_namespace_with_the_labels_is_adopted_and_kept_after_the_project() -> None:
    namespace = a_namespace(labels={**LABELS, "team": "x"}, annotations={"note": "y"})
    plan = plan_namespace(PROJECT, namespace)
    assert isinstance(plan, AdoptNamespace)
    metadata = plan.namespace["metadata"]
    assert metadata["labels"] == {**LABELS, "team": "x"}
    assert metadata["annotations"] == {"note": "y", **OWN, KEEP: "true"}
    assert metadata["ownerReferences"] == [controller_reference(PROJECT)]
    assert plan_namespace(PROJECT, plan.namespace) == KeepNamespace()


def test_another_projects_namespace_is_not_taken() -> None:
    other = {"namespace.gardener.cloud/project": "u-2"}
    plan = plan_namespace(PROJECT, a_namespace(labels=LABELS, annotations=other))
    assert plan == RejectNamespace("namespace garden-dev is already in use by another project")


def test_a_namespace_that_is_leaving_is_waited_for() -> None:
    leaving = a_namespace(labels=LABELS, annotations=OWN, deletionTimestamp="2026-01-01T00:00:00Z")
    assert plan_namespace(PROJECT, leaving) == RejectNamespace("namespace garden-dev is being deleted")


def test_what_was_made_here_is_not_kept_for_being_found_again() -> None:
    made = plan_namespace(PROJECT, None)
    assert isinstance(made, CreateNamespace)
    assert plan_namespace(PROJECT, made.namespace) == KeepNamespace()


def test_a_label_that_somebody_removed_from_the_owner_is_put_back() -> None:
    made = plan_namespace(PROJECT, None)
    assert isinstance(made, CreateNamespace)
    orphaned = merged(made.namespace, {"metadata": {"ownerReferences": []}})
    assert plan_namespace(PROJECT, orphaned) == AdoptNamespace(made.namespace)


def test_releases() -> None:
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert plan_release(PROJECT, None) == NothingToRelease()
    assert plan_release(PROJECT, a_namespace()) == NothingToRelease()
    assert plan_release(PROJECT, a_namespace(annotations={**OWN, "namespace.gardener.cloud/project": "u-2"})) == (
        NothingToRelease()
    )
    assert plan_release(PROJECT, a_namespace(annotations=OWN)) == MarkNamespace()
    assert plan_release(PROJECT, a_namespace(annotations=OWN, **leaving)) == EmptyNamespace()


def test_a_kept_namespace_is_let_go_of_without_a_trace() -> None:
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u-9"}
    adopted = a_namespace(
        labels={**LABELS, "team": "x"},
        annotations={**OWN, KEEP: "true", "note": "y"},
        ownerReferences=[foreign, controller_reference(PROJECT)],
    )
    plan = plan_release(PROJECT, adopted)
    assert isinstance(plan, ReleaseNamespace)
    metadata = plan.namespace["metadata"]
    assert metadata["labels"] == {"team": "x"}
    assert metadata["annotations"] == {"note": "y"}
    assert metadata["ownerReferences"] == [foreign]
