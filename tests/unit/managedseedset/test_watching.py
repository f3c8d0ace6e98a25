"""Which changes make which set look."""

from collections.abc import Mapping
from typing import Any

import pytest

from gardenbus.common.adapters.memory_bus import MemoryBus
from gardenbus.common.machinery.nudges import Nudges
from gardenbus.common.resources.document import Document, StoredObject, split
from gardenbus.common.resources.keys import ObjectKey, Subjects
from gardenbus.common.resources.managed_seed_sets import replica_managed_seed, replica_shoot
from gardenbus.managedseedset.reconcilers.watching import Watch
from tests.support.builders import a_seed, a_shoot, merged
from tests.support.clocks import FakeClock
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


class Known:
    """What an informer knows: the set, and its replica."""

    def __init__(self) -> None:
        self._objects = {each.key: each for each in map(stored, (A_SET, SHOOT, MANAGED_SEED))}

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        return {key: each for key, each in self._objects.items() if key.kind == kind}


class Nudged(Nudges):
    """Remembers who was nudged."""

    def __init__(self) -> None:
        super().__init__(MemoryBus(FakeClock()), Subjects(), "managedseedset")
        self.keys: list[ObjectKey] = []

    def nudge(self, key: ObjectKey) -> None:
        self.keys.append(key)


def nudged_by(old: Document | None, new: Document | None) -> list[ObjectKey]:
    nudged = Nudged()
    before, after = (None if each is None else stored(each) for each in (old, new))
    known = before or after
    assert known is not None
    Watch(Known(), nudged).changed(known.key, before, after)
    return nudged.keys


def with_status(document: Document, **status: Any) -> Document:
    return merged(document, {"status": status})


def test_a_new_or_changed_set_looks_at_itself_but_not_for_its_own_status():
    assert nudged_by(None, A_SET) == [SET]
    assert nudged_by(A_SET, merged(A_SET, {"spec": {"replicas": 3}})) == [SET]
    assert nudged_by(A_SET, with_status(A_SET, replicas=1)) == []
    assert nudged_by(A_SET, None) == []


@pytest.mark.parametrize("replica", [SHOOT, MANAGED_SEED], ids=["shoot", "managed seed"])
def test_a_replica_that_comes_or_goes_nudges_its_set(replica: Document):
    assert nudged_by(None, replica) == [SET]
    assert nudged_by(replica, None) == [SET]


def test_the_progress_of_a_shoot_nudges_nobody_but_its_end_does():
    running = with_status(SHOOT, lastOperation={"type": "Create", "state": "Processing", "progress": 10})
    further = with_status(SHOOT, lastOperation={"type": "Create", "state": "Processing", "progress": 40})
    done = with_status(SHOOT, lastOperation={"type": "Create", "state": "Succeeded", "progress": 100})

    assert nudged_by(running, further) == []
    assert nudged_by(further, done) == [SET]


def test_the_schedulers_refusal_nudges():
    refused = with_status(SHOOT, lastOperation={"type": "Create", "state": "Pending", "description": "no seed"})

    assert nudged_by(SHOOT, refused) == [SET]
    assert nudged_by(refused, with_status(refused, lastOperation={"description": "none still"})) == [SET]


def test_a_seed_nudges_the_set_of_its_replica_when_its_readiness_changes():
    ready = a_seed("crowd-0", status={"conditions": [], "observedGeneration": 1}, metadata={"generation": 1})
    beating = merged(ready, {"status": {"kubernetesVersion": "1.35"}})

    assert nudged_by(None, ready) == [SET]
    assert nudged_by(ready, beating) == []
    marked = merged(ready, {"metadata": {"annotations": {"seedmanagement.gardener.cloud/marked-for-removal": "x"}}})
    assert nudged_by(ready, marked) == [SET]
    assert nudged_by(None, a_seed("stranger")) == []


def test_an_orphan_nudges_the_sets_that_select_it():
    assert nudged_by(None, a_shoot("crowd-9", "garden", metadata={"labels": {"set": "crowd"}})) == [SET]
    assert nudged_by(None, a_shoot("crowd-9", "garden")) == []
    assert nudged_by(None, a_shoot("crowd-9", metadata={"labels": {"set": "crowd"}})) == []


def test_what_another_kind_of_owner_controls_nudges_nobody():
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "crowd", "uid": "other", "controller": True}

    assert nudged_by(None, merged(SHOOT, {"metadata": {"ownerReferences": [owner]}})) == []
