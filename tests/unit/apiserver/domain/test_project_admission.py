"""Projects: their namespace, who created them and who owns them.

Gardener's own cases (`plugin/pkg/project/{validator,mutator}/admission_test.go`) and some of ours.
"""

from typing import Any

import pytest

from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document
from gardenbus.common.errors import InvalidResource
from tests.support.admissions import admit, mutate
from tests.support.builders import a_project, merged

ANN, BOB = ({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name} for name in ("ann", "bob"))
OWNING = {"role": "admin", "roles": ["admin", "owner"]}
ROBOT = {"kind": "ServiceAccount", "name": "robot", "namespace": "garden-dev"}


def spec_of(given: Document | None, old: Document | None = None, user: str = "ann") -> Document:
    before = a_project(spec=old) if old is not None else None
    return mutate(a_project(spec=given), before, RelatedObjects(), user=user).document["spec"]


@pytest.mark.parametrize(
    ("given", "owner", "members"),
    [
        ({}, ANN, [{**ANN, **OWNING}]),
        ({"owner": BOB}, BOB, [{**BOB, **OWNING}]),
        ({"owner": ROBOT}, ROBOT, [{**ROBOT, **OWNING}]),
        ({"members": [{**BOB, "role": "viewer"}]}, ANN, [{**BOB, "role": "viewer"}, {**ANN, **OWNING}]),
        ({"members": [{**BOB, "role": "owner"}]}, BOB, [{**BOB, "role": "owner"}]),
        ({"members": [{**BOB, "roles": ["uam", "owner"]}]}, BOB, [{**BOB, "roles": ["uam", "owner"]}]),
        ({"owner": BOB, "members": [{**BOB, "role": "viewer"}]}, BOB, [{**BOB, "role": "viewer"}]),
        ({"owner": BOB, "members": [{**ROBOT, "name": "bob"}]}, BOB, [{**ROBOT, "name": "bob"}, {**BOB, **OWNING}]),
    ],
)
def test_a_new_project_has_a_creator_and_an_owner_who_is_a_member(given: Document, owner: Any, members: Any) -> None:
    spec = spec_of(given)
    assert (spec["createdBy"], spec["owner"], spec["members"]) == (ANN, owner, members)


@pytest.mark.parametrize("user", ["", "system:anonymous"])
def test_whoever_has_no_name_owns_nothing(user: str) -> None:
    assert spec_of({}, user=user) == {"namespace": "garden-dev"}
    assert spec_of({"members": [{**BOB, "role": "owner"}]}, user=user)["owner"] == BOB


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([{**BOB, "role": "viewer"}], [{**BOB, "role": "viewer"}, {**ANN, **OWNING}]),
        ([{**ANN, **OWNING}], [{**ANN, **OWNING}]),
        ([{**ANN, "role": "admin"}, {**BOB, "role": "owner"}], [{**ANN, "role": "admin"}, {**BOB, "role": "owner"}]),
    ],
)
def test_the_owner_is_added_to_the_members_of_a_stored_project_once(members: Any, expected: Any) -> None:
    given = {"owner": ANN, "members": members}
    assert spec_of(given, {"owner": ANN}, user="eve")["members"] == expected


def test_the_creator_is_who_sent_it_and_stays() -> None:
    assert spec_of({"createdBy": BOB})["createdBy"] == ANN
    for given in ({}, {"createdBy": BOB}):
        assert spec_of(given, {"createdBy": ANN}, user="eve")["createdBy"] == ANN
    assert "createdBy" not in spec_of({}, {}), "what was created before this was recorded has none"


def test_an_owner_who_is_left_out_of_the_members_comes_back() -> None:
    given = {"owner": BOB, "members": [{**ANN, "role": "viewer"}]}
    assert spec_of(given, given)["members"] == [*given["members"], {**BOB, **OWNING}]
    complete = spec_of(given, given)
    assert spec_of(complete, complete) == complete, "and only once"


@pytest.mark.parametrize(
    "given", [{"owner": "bob"}, {"members": "bob"}, {"owner": BOB, "members": 7}, {"owner": {"kind": 1}}]
)
def test_what_is_malformed_is_left_to_validation(given: Document) -> None:
    spec = spec_of(given, {})
    assert {name: spec[name] for name in given} == given


@pytest.mark.parametrize("namespace", ["garden-dev", "garden-x", "garden"])
def test_a_namespace_with_the_prefix_is_taken(namespace: str) -> None:
    admit(a_project(namespace=namespace), None, RelatedObjects())


def test_a_project_that_names_no_namespace_is_taken() -> None:
    admit(merged(a_project(), {"spec": {"namespace": None}}), None, RelatedObjects())


@pytest.mark.parametrize("namespace", ["dev", "gardener", "default", "kube-system"])
def test_any_other_namespace_is_refused_for_a_new_project(namespace: str) -> None:
    project = a_project(namespace=namespace)
    with pytest.raises(InvalidResource, match=r"spec\.namespace: .*has to begin with garden-"):
        admit(project, None, RelatedObjects())
    admit(project, project, RelatedObjects())


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ([{"resource": "shoots", "selector": {"matchLabels": {"a": "b"}}}], ""),
        ([{"resource": "projects"}], r"dualApprovalForDeletion\[0\]\.resource: must be"),
        ([{"selector": {"matchLabels": {"a": "b"}}}], r"dualApprovalForDeletion\[0\]\.resource: is needed"),
        ([{"resource": "shoots"}, {"resource": "shoots"}], r"dualApprovalForDeletion\[1\]\.resource: is there already"),
        (
            [{"resource": "shoots", "selector": {"matchExpressions": [{"key": "a", "operator": "No"}]}}],
            r"dualApprovalForDeletion\[0\]\.selector",
        ),
        ([{"resource": "shoots", "includeServiceAccounts": "no"}], r"dualApprovalForDeletion\[0\]\.includeService"),
    ],
)
def test_two_are_demanded_for_deletions_of_shoots_alone(rules: list[Document], problem: str) -> None:
    """Source: Gardener's `ValidateProjectSpec`, whose only resource is `shoots`."""
    project = a_project(spec={"dualApprovalForDeletion": rules})
    validate(project, project)
    if not problem:
        validate(project, None)
        return
    with pytest.raises(InvalidResource, match=problem):
        validate(project, None)


def test_an_owner_has_no_field_of_a_member_that_is_null_as_another_apply_would_take_it_off() -> None:
    member = {**BOB, "apiGroup": None, "role": "owner"}
    spec = spec_of({"members": [member]})
    assert spec["owner"] == {"kind": "User", "name": "bob"}
    assert spec["members"] == [member]
