"""Adoption, release, and objects of other owners."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import ObjectKey
from tests.support.builders import a_managed_seed, a_shoot, merged
from tests.support.seed_sets import SET, SeedGarden, a_managed_seed_set


def shoot_key(name: str) -> ObjectKey:
    return ObjectKey("shoot", "garden", name)


def owners(garden: SeedGarden, key: ObjectKey) -> list[Any]:
    return garden.now(key)["metadata"].get("ownerReferences", [])


def a_replica_like_shoot(name: str, **changes: Any) -> Document:
    spec = a_managed_seed_set()["spec"]["shootTemplate"]["spec"]
    shoot = merged(a_shoot(name, "garden"), {"metadata": {"labels": {"set": "crowd"}}, "spec": spec})
    return merged(merged(shoot, {"spec": {"dns": {"domain": f"{name}.seeds.example.com"}}}), changes)


OTHER_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "some-uid", "controller": True}


@pytest.fixture
def garden() -> SeedGarden:
    return SeedGarden()


def test_a_shoot_that_is_called_and_labelled_as_a_replica_is_adopted_with_its_managed_seed(garden: SeedGarden):
    garden.applied(a_replica_like_shoot("crowd-4"))
    garden.reconcile_shoot("crowd-4")
    garden.applied(a_managed_seed("crowd-4", metadata={"labels": {"set": "crowd"}}))
    garden.applied(a_managed_seed_set(replicas=1))

    garden.run_until_stable()

    assert garden.shoots() == ["crowd-4"]
    for kind in ("shoot", "managedseed"):
        (owner,) = owners(garden, ObjectKey(kind, "garden", "crowd-4"))
        assert owner["name"] == "crowd"
    assert garden.status["nextReplicaNumber"] == 5
    assert garden.reasons().count("Adopted") == 2


@pytest.mark.parametrize(
    "stranger",
    [
        a_replica_like_shoot("crowd-1", metadata={"ownerReferences": [OTHER_OWNER]}),
        a_replica_like_shoot("crowd-1", metadata={"labels": {"set": "another"}}),
        a_replica_like_shoot("lonely"),
        a_replica_like_shoot("crowd-01"),
    ],
    ids=["another owner's", "other labels", "another name", "a name that is not its ordinal's"],
)
def test_others_are_left_alone(garden: SeedGarden, stranger: Document):
    garden.applied(stranger)
    before = owners(garden, shoot_key(stranger["metadata"]["name"]))
    garden.applied(a_managed_seed_set(replicas=0))

    garden.run_until_stable()

    assert garden.shoots() == [stranger["metadata"]["name"]]
    assert owners(garden, shoot_key(stranger["metadata"]["name"])) == before
    assert garden.status["replicas"] == 0


def test_what_the_selector_no_longer_matches_is_released_and_replaced(garden: SeedGarden):
    garden.applied(a_managed_seed_set(replicas=1))
    garden.run_until_stable()

    garden.patched(shoot_key("crowd-0"), {"metadata": {"labels": {"set": "mine"}}})
    garden.run_until_stable()

    assert garden.shoots() == ["crowd-0", "crowd-1"]
    assert owners(garden, shoot_key("crowd-0")) == []
    assert owners(garden, ObjectKey("managedseed", "garden", "crowd-0")) == []
    assert garden.status["replicas"] == 1


def test_a_released_replica_is_not_removed_with_the_set(garden: SeedGarden):
    garden.applied(a_managed_seed_set(replicas=1))
    garden.run_until_stable()
    garden.patched(shoot_key("crowd-0"), {"metadata": {"labels": {"set": "mine"}}})
    garden.reconcile_once()
    garden.deleted(SET)
    for _ in range(30):
        if garden.get(SET) is not None:
            garden.reconcile_once()
            garden.run_gardenlets()

    assert garden.get(SET) is None
    assert "crowd-0" in garden.shoots()


def test_a_managed_seed_of_another_owner_keeps_its_replica(garden: SeedGarden):
    garden.applied(a_replica_like_shoot("crowd-0"))
    garden.reconcile_shoot("crowd-0")
    garden.applied(a_managed_seed("crowd-0", metadata={"ownerReferences": [OTHER_OWNER]}))
    garden.applied(a_managed_seed_set(replicas=0))

    garden.run_until_stable()

    assert garden.managed_seeds() == ["crowd-0"]
    assert section(garden.condition("ScaleInBlocked")).get("reason") == "Protected"


def test_nobody_is_adopted_by_a_set_that_is_deleted(garden: SeedGarden):
    garden.applied(a_managed_seed_set(replicas=1))
    garden.run_until_stable()
    garden.place("crowd-0", "tenant")
    garden.deleted(SET)
    garden.applied(a_replica_like_shoot("crowd-7"))

    garden.run_until_stable()

    assert owners(garden, shoot_key("crowd-7")) == []
