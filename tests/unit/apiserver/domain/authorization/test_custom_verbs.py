"""Changes within an object that take a verb of their own."""

import pytest

from gardenbus.apiserver.domain.authorization.actions import UNLIMITED, Permit, Requester
from gardenbus.apiserver.domain.authorization.custom_verbs import check_change, check_verbs
from gardenbus.common.api.document import Document
from tests.support.builders import a_namespaced_cloudprofile, a_project, a_shoot

NONE = Permit()
ANN = Requester("ann")


def verb_of(old: Document | None, new: Document, permit: Permit = NONE, requester: Requester = ANN) -> str:
    rejection = check_change(old, new, requester, permit) or check_verbs(old, new, requester, permit)
    return rejection.rule if rejection else ""


def a_member(name: str, kind: str = "User") -> Document:
    return {"kind": kind, "name": name, "role": "admin"}


def test_the_seed_of_a_shoot_is_chosen_by_those_who_may_bind() -> None:
    unplaced, placed = a_shoot(), a_shoot(spec={"seedName": "aws"})
    assert verb_of(None, placed) == verb_of(unplaced, placed) == verb_of(placed, unplaced) == "bind"
    assert verb_of(None, unplaced) == verb_of(placed, placed) == ""
    assert verb_of(None, placed, UNLIMITED) == verb_of(None, placed, Permit(frozenset({"bind"}))) == ""


@pytest.mark.parametrize(
    ("spec", "verb"),
    [
        ({"description": "ours"}, ""),
        ({"members": [a_member("ann"), a_member("carl")]}, "manage-members"),
        ({"members": [a_member("ann"), a_member("team", "Group")]}, "manage-members"),
        ({"members": [a_member("ann"), a_member("bob")]}, ""),
        ({"members": []}, "manage-members"),
        ({"members": [a_member("ann"), a_member("robot", "ServiceAccount")]}, ""),
        ({"members": [a_member("ann"), a_member("system:serviceaccount:garden-dev:robot")]}, ""),
        ({"owner": {"kind": "User", "name": "ann"}}, "manage-members"),
        ({"tolerations": {"whitelist": [{"key": "dedicated"}]}}, "modify-spec-tolerations-whitelist"),
    ],
)
def test_members_owner_and_whitelist_of_a_project_take_their_verbs(spec: Document, verb: str) -> None:
    before = a_project(spec={"members": [a_member("ann")], "owner": {"kind": "User", "name": "bob"}})
    assert verb_of(before, {**before, "spec": {**before["spec"], **spec}}) == verb


@pytest.mark.parametrize(
    ("spec", "verb"),
    [
        ({}, ""),
        ({"owner": {"kind": "User", "name": "bob"}, "members": [a_member("bob")]}, ""),
        ({"owner": {"kind": "User", "name": "ann"}, "members": [a_member("bob")]}, ""),
        ({"owner": {"kind": "User", "name": "bob"}, "members": [a_member("robot", "ServiceAccount")]}, ""),
        ({"owner": {"kind": "User", "name": "bob"}, "members": [a_member("bob"), a_member("carl")]}, "manage-members"),
        ({"tolerations": {"whitelist": [{"key": "x"}]}}, "modify-spec-tolerations-whitelist"),
        ({"tolerations": {"defaults": [{"key": "x"}]}}, ""),
    ],
)
def test_a_new_project_takes_the_verbs_for_others_than_its_owner(spec: Document, verb: str) -> None:
    assert verb_of(None, a_project(spec=spec)) == verb
    assert verb_of(None, a_project(spec=spec), Permit(frozenset({verb}))) == ""


def test_the_whitelist_of_a_project_takes_its_verb_to_be_emptied() -> None:
    before = a_project(spec={"tolerations": {"whitelist": [{"key": "x"}]}})
    assert verb_of(before, a_project()) == "modify-spec-tolerations-whitelist"


def test_the_owner_of_a_project_manages_its_members_but_not_its_whitelist() -> None:
    before = a_project(spec={"owner": {"kind": "User", "name": "ann"}})
    assert verb_of(before, {**before, "spec": {**before["spec"], "members": [a_member("bob")]}}) == ""
    whitelisted = {**before, "spec": {**before["spec"], "tolerations": {"whitelist": [{"key": "x"}]}}}
    assert verb_of(before, whitelisted) == "modify-spec-tolerations-whitelist"


@pytest.mark.parametrize("field", ["kubernetes", "machineImages", "providerConfig"])
def test_versions_and_images_of_a_namespaced_profile_take_their_verbs(field: str) -> None:
    before = a_namespaced_cloudprofile()
    plain = {**before, "spec": {name: value for name, value in before["spec"].items() if name != field}}
    changed = {**plain, "spec": {**plain["spec"], field: {"versions": [{"version": "1.33.0"}]}}}
    assert verb_of(plain, changed) == f"modify-spec-{field.lower()}"


def test_a_rejection_names_field_object_and_verb() -> None:
    rejection = check_change(None, a_shoot(spec={"seedName": "aws"}), ANN, NONE)
    assert rejection is not None
    assert (
        rejection.detail
        == 'user "ann" cannot change spec.seedName of shoot garden-dev/apollo: that takes the verb bind'
    )


def test_the_owner_who_became_a_member_may_be_left_out_of_a_manifest() -> None:
    owner = {"kind": "User", "name": "bob"}
    before = a_project(
        spec={"members": [a_member("ann"), {**owner, "role": "admin", "roles": ["admin", "owner"]}], "owner": owner}
    )
    assert verb_of(before, {**before, "spec": {**before["spec"], "members": [a_member("ann")]}}) == ""


def test_nobody_refers_to_what_they_cannot_read() -> None:
    named = {"name": "a", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "key"}}
    shoot = a_shoot(spec={"resources": [named]})
    for readable, rule in ((frozenset({"secret"}), ""), (frozenset({"configmap"}), "get"), (None, "")):
        permit = Permit(frozenset(), readable)
        assert verb_of(None, shoot, permit) == verb_of(a_shoot(), shoot, permit) == rule
        assert verb_of(shoot, shoot, permit) == verb_of(shoot, a_shoot(), permit) == ""


def test_nobody_without_a_verb_holds_what_is_in_anothers_namespace() -> None:
    def a_binding(**fields: object) -> Document:
        metadata = {"name": "mine", "namespace": "garden-dev"}
        return {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "SecretBinding", "metadata": metadata, **fields}

    own = a_binding(secretRef={"name": "key"}, quotas=[{"name": "limit", "namespace": "garden-dev"}])
    foreign = a_binding(secretRef={"name": "key", "namespace": "garden-x"})
    assert verb_of(None, own) == verb_of(foreign, foreign) == verb_of(foreign, own) == ""
    assert verb_of(None, foreign) == verb_of(own, foreign) == "refer"
    assert verb_of(None, a_binding(quotas=[{"name": "limit", "namespace": "garden-x"}])) == "refer"
    assert verb_of(None, foreign, UNLIMITED) == ""
