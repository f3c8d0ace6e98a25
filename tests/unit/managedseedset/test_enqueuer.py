"""Changes that enqueue a set."""

from collections.abc import Mapping
from typing import Any

import pytest

from gardenbus.common.api.document import Document, StoredObject, split
from gardenbus.common.api.garden.managed_seed_sets import replica_managed_seed, replica_shoot
from gardenbus.common.api.keys import ObjectKey
from gardenbus.managedseedset.watch.enqueuer import managed_seed_set_enqueuer
from tests.support.builders import a_seed, a_shoot, merged
from tests.support.seed_sets import SET, a_managed_seed_set

A_SET = merged(a_managed_seed_set(), {"metadata": {"uid": "uid-of-set"}})
SHOOT = replica_shoot(A_SET, "crowd-0")
MANAGED_SEED = replica_managed_seed(A_SET, "crowd-0")


def stored(document: Document) -> StoredObject:
    metadata = document["metadata"]
    key = ObjectKey(document["kind"].lower(), metadata.get("namespace", ""), metadata["name"])
    return StoredObject(
        key=key, parts=split(document), uid="uid", version=1, generation=1, created_at="2026-01-02T03:04:05Z"
    )


class FakeLister:
    """Lists the set and its replica."""

    def __init__(self) -> None:
        self._objects = {each.key: each for each in map(stored, (A_SET, SHOOT, MANAGED_SEED))}

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        return {key: each for key, each in self._objects.items() if key.kind == kind}


def enqueued_by(old: Document | None, new: Document | None) -> list[ObjectKey]:
    enqueued: list[ObjectKey] = []
    before, after = (None if each is None else stored(each) for each in (old, new))
    changed = before or after
    assert changed is not None
    managed_seed_set_enqueuer(FakeLister(), enqueued.append).changed(changed.key, before, after)
    return enqueued


def with_status(document: Document, **status: Any) -> Document:
    return merged(document, {"status": status})


def test_a_new_or_changed_set_enqueues_itself_but_not_for_its_own_status():
    assert enqueued_by(None, A_SET) == [SET]
    assert enqueued_by(A_SET, merged(A_SET, {"spec": {"replicas": 3}})) == [SET]
    assert enqueued_by(A_SET, with_status(A_SET, replicas=1)) == []
    assert enqueued_by(A_SET, None) == []


@pytest.mark.parametrize("replica", [SHOOT, MANAGED_SEED], ids=["shoot", "managed seed"])
def test_a_replica_that_comes_or_goes_enqueues_its_set(replica: Document):
    assert enqueued_by(None, replica) == [SET]
    assert enqueued_by(replica, None) == [SET]


def test_the_progress_of_a_shoot_enqueues_nobody_but_its_end_does():
    running = with_status(SHOOT, lastOperation={"type": "Create", "state": "Processing", "progress": 10})
    further = with_status(SHOOT, lastOperation={"type": "Create", "state": "Processing", "progress": 40})
    done = with_status(SHOOT, lastOperation={"type": "Create", "state": "Succeeded", "progress": 100})

    assert enqueued_by(running, further) == []
    assert enqueued_by(further, done) == [SET]


def test_the_schedulers_rejection_enqueues():
    rejected = with_status(SHOOT, lastOperation={"type": "Create", "state": "Pending", "description": "no seed"})

    assert enqueued_by(SHOOT, rejected) == [SET]
    assert enqueued_by(rejected, with_status(rejected, lastOperation={"description": "none still"})) == [SET]


def test_a_seed_enqueues_the_set_of_its_replica_when_its_readiness_changes():
    ready = a_seed("crowd-0", status={"conditions": [], "observedGeneration": 1}, metadata={"generation": 1})
    beating = merged(ready, {"status": {"kubernetesVersion": "1.35"}})

    assert enqueued_by(None, ready) == [SET]
    assert enqueued_by(ready, beating) == []
    annotated = merged(ready, {"metadata": {"annotations": {"seedmanagement.gardener.cloud/marked-for-removal": "x"}}})
    assert enqueued_by(ready, annotated) == [SET]
    assert enqueued_by(None, a_seed("stranger")) == []


def test_an_orphan_enqueues_the_sets_that_select_it():
    assert enqueued_by(None, a_shoot("crowd-9", "garden", metadata={"labels": {"set": "crowd"}})) == [SET]
    assert enqueued_by(None, a_shoot("crowd-9", "garden")) == []
    assert enqueued_by(None, a_shoot("crowd-9", metadata={"labels": {"set": "crowd"}})) == []


def test_what_another_kind_of_owner_controls_enqueues_nobody():
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "crowd", "uid": "other", "controller": True}

    assert enqueued_by(None, merged(SHOOT, {"metadata": {"ownerReferences": [owner]}})) == []
