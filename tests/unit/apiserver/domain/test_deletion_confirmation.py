"""DeletionConfirmation: what has to be confirmed, and by whom.

The cases are those of Gardener's `plugin/pkg/global/deletionconfirmation/admission_test.go`.
"""

from typing import Any

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.authorization.actions import Requester
from gardenbus.apiserver.domain.plugins import deletion_confirmation, extension_labels
from gardenbus.apiserver.domain.plugins.plugin import Change
from gardenbus.apiserver.domain.related_objects import ProjectQuery, RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.errors import Forbidden
from tests.support.builders import a_project, a_shoot, merged

CHAIN = Admission([deletion_confirmation.PLUGIN])
CONFIRMED = {"confirmation.gardener.cloud/deletion": "true"}
BOT = "system:serviceaccount:garden-dev:bot"
PROTECTED = {"metadata": {"labels": {"gardener.cloud/deletion-protected": "true"}}}


def a_secret() -> Document:
    """A Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "dev"}}


def a_shoot_state() -> Document:
    """A ShootState."""
    return {**a_secret(), "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ShootState"}


def an_extension(**metadata: Any) -> Document:
    """An object of a group of extensions."""
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Infrastructure",
        "metadata": {"name": "infra", "namespace": "shoot--dev--apollo", **metadata},
    }


@pytest.mark.parametrize(
    "stored", [a_shoot(), a_project(), a_shoot_state(), an_extension(), merged(a_secret(), PROTECTED)]
)
def test_what_is_dear_has_to_be_confirmed(stored: Document) -> None:
    for annotations in ({}, {"confirmation.gardener.cloud/deletion": "false"}):
        with pytest.raises(Forbidden, match="is deleted only after this annotation was set"):
            CHAIN.admit_deletion(merged(stored, {"metadata": {"annotations": annotations}}))
    CHAIN.admit_deletion(merged(stored, {"metadata": {"annotations": CONFIRMED}}))


CONFIRMER = "deletion.gardener.cloud/confirmed-by"


@pytest.mark.parametrize(
    ("old", "given", "confirmer"),
    [
        (None, CONFIRMED, "some-user"),
        (None, {**CONFIRMED, CONFIRMER: "some-other-user"}, "some-user"),
        (None, {CONFIRMER: "some-user"}, None),
        ({}, CONFIRMED, "some-user"),
        ({**CONFIRMED, CONFIRMER: "first"}, {**CONFIRMED, CONFIRMER: "try-to-change-it"}, "first"),
        ({**CONFIRMED, CONFIRMER: "first"}, CONFIRMED, "first"),
        ({**CONFIRMED, CONFIRMER: "first"}, {CONFIRMER: "some-user"}, None),
        ({"confirmation.gardener.cloud/deletion": "false"}, {CONFIRMER: "some-user"}, None),
    ],
)
def test_who_confirms_a_deletion_is_recorded_by_the_system_alone(
    old: Document | None, given: Document, confirmer: str | None
) -> None:
    before = None if old is None else merged(a_shoot(), {"metadata": {"annotations": old}})
    shoot = merged(a_shoot(), {"metadata": {"annotations": given}})
    mutated = CHAIN.mutate(shoot, before, RelatedObjects(), user="some-user").document
    assert mutated["metadata"]["annotations"].get(CONFIRMER) == confirmer


def test_other_objects_are_deleted_at_once() -> None:
    CHAIN.admit_deletion(a_secret())
    CHAIN.admit_deletion(merged(a_secret(), {"metadata": {"labels": {"gardener.cloud/deletion-protected": "false"}}}))


def confirmed_by(user: str, **labels: str) -> Document:
    """A shoot whose deletion somebody has confirmed."""
    annotations = {**CONFIRMED, "deletion.gardener.cloud/confirmed-by": user}
    return merged(a_shoot(), {"metadata": {"annotations": annotations, "labels": labels}})


def demanding(*rules: Document) -> RelatedObjects:
    """A Project that demands two for some shoots."""
    project = merged(a_project(), {"spec": {"dualApprovalForDeletion": list(rules)}})
    return RelatedObjects(projects={"garden-dev": project})


SHOOTS: Document = {"resource": "shoots", "selector": {"matchLabels": {"env": "prod"}}}


ALL_SHOOTS: Document = {**SHOOTS, "selector": {}}


@pytest.mark.parametrize(
    ("rules", "confirmer", "deleter", "is_allowed"),
    [
        ([SHOOTS], "alice", "alice", False),
        ([SHOOTS], "alice", "bob", True),
        ([SHOOTS], BOT, BOT, False),
        ([{**SHOOTS, "includeServiceAccounts": True}], BOT, BOT, False),
        ([{**SHOOTS, "includeServiceAccounts": False}], BOT, BOT, True),
        ([{**SHOOTS, "includeServiceAccounts": False}], "alice", "alice", False),
        ([{**SHOOTS, "resource": "secrets"}], "alice", "alice", True),
        ([{**SHOOTS, "selector": {"matchLabels": {"env": "dev"}}}], "alice", "alice", True),
        ([ALL_SHOOTS], "alice", "alice", False),
        ([{**SHOOTS, "selector": {"matchLabels": 5}}], "alice", "alice", True),
        ([], "alice", "alice", True),
        ([SHOOTS], "alice", None, True),  # the system itself
    ],
)
def test_a_project_may_demand_that_another_one_confirms(
    rules: list[Document], confirmer: str, deleter: str | None, is_allowed: bool
) -> None:
    shoot = confirmed_by(confirmer, env="prod")
    assert CHAIN.deletion_queries(shoot) == (ProjectQuery("garden-dev"),)
    if is_allowed:
        CHAIN.admit_deletion(shoot, demanding(*rules), user=deleter)
        return
    with pytest.raises(Forbidden, match="not allowed to both confirm the deletion"):
        CHAIN.admit_deletion(shoot, demanding(*rules), user=deleter)


def test_only_the_service_itself_deletes_for_nobody() -> None:
    assert Requester("controllermanager", is_insider=True).is_controller
    assert not Requester("controllermanager").is_controller
    assert not Requester("operator", is_insider=True).is_controller


EARLY, LATE = "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"


def expiring(at: str | None, **labels: str) -> Document:
    """A shoot that expires then."""
    annotations = {"shoot.gardener.cloud/expiration-timestamp": at} if at else {}
    return merged(a_shoot(), {"metadata": {"annotations": annotations, "labels": labels}})


@pytest.mark.parametrize(
    ("old", "new", "user", "rules", "is_allowed"),
    [
        (expiring(LATE), expiring(EARLY), "alice", [ALL_SHOOTS], False),
        (expiring(None), expiring(EARLY), "alice", [ALL_SHOOTS], False),
        (expiring(LATE, env="prod"), expiring(EARLY), "alice", [SHOOTS], False),
        (expiring(EARLY), expiring(LATE), "alice", [ALL_SHOOTS], True),
        (expiring(LATE), expiring(LATE), "alice", [ALL_SHOOTS], True),
        (expiring(LATE), expiring(EARLY), "alice", [], True),
        (expiring(LATE), expiring(EARLY), "controllermanager", [ALL_SHOOTS], True),
        (None, expiring(EARLY), "alice", [ALL_SHOOTS], True),
    ],
)
def test_nobody_brings_an_end_forward_that_takes_two(
    old: Document | None, new: Document, user: str, rules: list[Document], is_allowed: bool
) -> None:
    rule = deletion_confirmation.PLUGIN.rules[0]
    assert rule.admit is not None
    assert rule.queries is not None
    change = Change(new, old, user)
    if is_allowed:
        rule.admit(new, change, demanding(*rules))
        return
    assert rule.queries(new, old) == (ProjectQuery("garden-dev"),)
    with pytest.raises(Forbidden, match="may be moved to a later time only"):
        rule.admit(new, change, demanding(*rules))


PEOPLE_ONLY: Document = {**SHOOTS, "includeServiceAccounts": False}
ALSO_IN_DEV: Document = {"resource": "shoots", "selector": {"matchLabels": {"env": "dev"}}}


@pytest.mark.parametrize(
    ("old", "new", "user", "rules", "is_allowed"),
    [
        ({"env": "prod"}, {}, "alice", [SHOOTS], False),
        ({"env": "prod"}, {"env": "dev"}, "alice", [SHOOTS], False),
        ({"env": "prod"}, {"env": "dev"}, "operator", [SHOOTS], False),
        ({"env": "prod"}, {"env": "dev"}, BOT, [SHOOTS], False),
        ({"env": "prod"}, {"env": "dev"}, BOT, [PEOPLE_ONLY], False),  # people would be set free by it
        ({"env": "prod"}, {"env": "dev"}, "alice", [SHOOTS, {**ALSO_IN_DEV, "includeServiceAccounts": False}], False),
        ({"env": "prod"}, {"env": "dev"}, "alice", [SHOOTS, ALSO_IN_DEV], True),
        ({"env": "prod"}, {"env": "prod", "team": "a"}, "alice", [SHOOTS], True),
        ({"env": "dev"}, {"env": "prod"}, "alice", [SHOOTS], True),
        ({"env": "dev"}, {}, "alice", [SHOOTS], True),
        ({"env": "prod"}, {}, "alice", [ALL_SHOOTS], True),
        ({"env": "prod"}, {}, "alice", [], True),
        ({"env": "prod"}, {}, "controllermanager", [SHOOTS], True),
    ],
)
def test_nobody_relabels_a_shoot_so_that_one_subject_may_delete_it(
    old: Document, new: Document, user: str, rules: list[Document], is_allowed: bool
) -> None:
    before, after = (merged(a_shoot(), {"metadata": {"labels": labels}}) for labels in (old, new))
    assert CHAIN.related_queries(after, before) == (ProjectQuery("garden-dev"),)
    if is_allowed:
        CHAIN.admit(after, before, demanding(*rules), user=user)
        return
    with pytest.raises(Forbidden, match=r"metadata\.labels: spec\.dualApprovalForDeletion of the Project demands"):
        CHAIN.admit(after, before, demanding(*rules), user=user)


def test_the_project_is_read_where_a_change_of_the_spec_may_relabel_a_shoot_but_not_for_other_changes() -> None:
    plain = merged(a_shoot(), {"metadata": {"labels": {"env": "prod"}}})
    shoot = merged(plain, {"metadata": {"labels": {"networking.extensions.gardener.cloud/calico": "true"}}})
    other = {"spec": {"networking": {"type": "cilium"}}}
    assert CHAIN.related_queries(merged(shoot, other), shoot) == (ProjectQuery("garden-dev"),)
    assert CHAIN.related_queries(merged(plain, other), plain) == ()
    assert CHAIN.related_queries(merged(shoot, {"metadata": {"annotations": {"a": "b"}}}), shoot) == ()
    assert CHAIN.related_queries(shoot, None) == ()


def test_a_label_that_the_system_takes_off_takes_no_shoot_out_either() -> None:
    """The rule selects by a label of ExtensionLabels, which goes with the type in the spec."""
    label = "networking.extensions.gardener.cloud/calico"
    chain = Admission([extension_labels.PLUGIN, deletion_confirmation.PLUGIN])
    shoot = merged(a_shoot(), {"metadata": {"labels": {label: "true"}}, "spec": {"networking": {"type": "calico"}}})
    changed = merged(shoot, {"spec": {"networking": {"type": "cilium"}}})
    related = demanding({"resource": "shoots", "selector": {"matchLabels": {label: "true"}}})
    assert ProjectQuery("garden-dev") in chain.related_queries(changed, shoot)
    mutated = chain.mutate(changed, shoot, related, user="alice").document
    assert label not in mutated["metadata"]["labels"]
    with pytest.raises(Forbidden, match=r"metadata\.labels: "):
        chain.admit(mutated, shoot, related, user="alice")
