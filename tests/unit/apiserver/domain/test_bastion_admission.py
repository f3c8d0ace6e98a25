"""Bastions lead into shoots that run, and are theirs. Cases as in Gardener's plug-in test."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.plugins.bastion import PLUGIN
from gardenbus.apiserver.domain.plugins.plugin import Change
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import InvalidResource
from tests.support.builders import CORE, a_shoot, merged

SHOOT = ObjectKey("shoot", "garden-dev", "apollo")
RUNNING = a_shoot(metadata={"uid": "u"}, spec={"seedName": "aws-eu1"})
(RULE,) = PLUGIN.rules


def a_bastion(**changes: Any) -> Document:
    bastion: Document = {
        "apiVersion": "operations.gardener.cloud/v1alpha1",
        "kind": "Bastion",
        "metadata": {"name": "door", "namespace": "garden-dev"},
        "spec": {"shootRef": {"name": "apollo"}},
    }
    return merged(bastion, changes)


def admitted(bastion: Document, shoot: Document | None, old: Document | None = None) -> Document:
    assert RULE.mutate is not None
    assert RULE.admit is not None
    related = RelatedObjects(objects={} if shoot is None else {SHOOT: shoot})
    change = Change(bastion, old, "ann")
    new = RULE.mutate(bastion, change, related)
    RULE.admit(new, change, related)
    return new


def test_it_gets_seed_and_provider_of_its_shoot_which_owns_it() -> None:
    bastion = admitted(a_bastion(spec={"seedName": "other"}, metadata={"ownerReferences": [{"uid": "x"}]}), RUNNING)
    assert bastion["spec"] == {"shootRef": {"name": "apollo"}, "seedName": "aws-eu1", "providerType": "aws"}
    owner = {"apiVersion": CORE, "kind": "Shoot", "name": "apollo", "uid": "u"}
    assert bastion["metadata"]["ownerReferences"] == [{"uid": "x"}, owner]


@pytest.mark.parametrize(
    ("bastion", "shoot", "problem"),
    [
        (a_bastion(), None, "shoot garden-dev/apollo not found"),
        (a_bastion(spec={"shootRef": None}), RUNNING, "is needed"),
        (a_bastion(), a_shoot(), "has no seed yet"),
        (a_bastion(), merged(RUNNING, {"metadata": {"deletionTimestamp": "x"}}), "is being deleted"),
        (
            a_bastion(),
            merged(RUNNING, {"spec": {"provider": {"workersSettings": {"sshAccess": {"enabled": False}}}}}),
            "has no SSH access",
        ),
    ],
)
def test_it_leads_into_a_shoot_that_runs(bastion: Document, shoot: Document | None, problem: str) -> None:
    with pytest.raises(InvalidResource, match=problem) as error:
        admitted(bastion, shoot)
    assert [each.field for each in error.value.problems] == ["spec.shootRef.name"]


def test_only_a_new_one_asks_for_its_shoot() -> None:
    assert RULE.queries is not None
    assert RULE.queries(a_bastion(), None) == (ObjectQuery(SHOOT),)
    assert RULE.queries(a_bastion(), a_bastion()) == RULE.queries(a_bastion(spec=None), None) == ()


def test_a_change_asks_for_nothing_but_the_same_shoot() -> None:
    stored = a_bastion(spec={"seedName": "aws-eu1"})
    changed = merged(stored, {"metadata": {"annotations": {"gardener.cloud/operation": "keepalive"}}})
    assert admitted(changed, None, stored) == changed
    with pytest.raises(InvalidResource, match="is set once"):
        admitted(merged(stored, {"spec": {"shootRef": {"name": "artemis"}}}), None, stored)
