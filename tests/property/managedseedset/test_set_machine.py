"""A set in a changing world: invariants that hold whatever happens in between.

Two replicas of the service reconcile the set at once, each stopping before any read or write, each killed at any point;
shoots fail, seeds fall silent, tenants come and go, people change the set, protect replicas and delete some by hand.
At any time: at most one replica is under construction; no seed is removed while a shoot is on it, and none is placed on
one that is being removed; protected replicas stay; no ordinal is used twice; nextReplicaNumber never falls; there are
never more replicas than the set wants when one is created, and never fewer when one is removed. And when all goes well
again, the set is as it should be.
"""

import os
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.managed_seed_sets import ordinal_of
from gardenbus.common.api.garden.seed_management import CORDONED_BY, PRIORITY, PROTECT_FROM_DELETION, REMOVAL_ANNOTATION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import GardenbusError
from gardenbus.managedseedset.domain.ownership import controls
from tests.support.seed_sets import SET, SeedGarden, SteppedReconcile, a_managed_seed_set

EXAMPLES = int(os.environ.get("SET_MACHINE_EXAMPLES", "25"))
STEPS = int(os.environ.get("SET_MACHINE_STEPS", "50"))
MOST = 4

picks = st.integers(min_value=0, max_value=1_000)


class SetMachine(RuleBasedStateMachine):
    """See the module. `uids`: every replica's shoot that ever was, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.garden = SeedGarden()
        self.reconciles: list[SteppedReconcile] = []
        self.uids: dict[str, str] = {}
        self.ready_once: set[str] = set()
        self.removing: set[str] = set()
        self.next_number = 0
        self.tenants = 0
        self.by_hand: set[str] = set()

    @initialize(replicas=st.integers(0, MOST), drain=st.booleans(), grown=st.booleans())
    def begin(self, replicas: int, drain: bool, grown: bool) -> None:
        self.garden.host_seed(spec={"taints": [{"key": "seed.gardener.cloud/protected"}]})
        self.garden.applied(a_managed_seed_set(replicas=replicas, spec={"scaleIn": {"drain": drain}}))
        if grown:
            self.all_goes_well_for_a_while(4 * replicas + 1)

    # ------------------------------------------------------------------------------------------ the service

    @rule()
    def reconcile_once(self) -> None:
        self.garden.reconcile_once()

    @rule(rounds=st.integers(1, 8))
    def all_goes_well_for_a_while(self, rounds: int) -> None:
        for _ in range(rounds):
            self.garden.reconcile_once()
            self.bounds_hold()
            self.garden.run_gardenlets()
            self.bounds_hold()

    @precondition(lambda self: len(self.reconciles) < 2)
    @rule(steps=st.integers(0, 30))
    def begin_a_reconcile(self, steps: int) -> None:
        self.reconciles.append(self.garden.stepped())
        self._step(self.reconciles[-1], steps)

    @precondition(lambda self: self.reconciles)
    @rule(pick=picks, steps=st.integers(1, 30))
    def go_on(self, pick: int, steps: int) -> None:
        self._step(self.reconciles[pick % len(self.reconciles)], steps)

    @precondition(lambda self: self.reconciles)
    @rule(pick=picks)
    def kill(self, pick: int) -> None:
        self.reconciles.pop(pick % len(self.reconciles)).kill()

    def _step(self, stepped: SteppedReconcile, steps: int) -> None:
        for _ in range(steps):
            stepped.step()
            self.bounds_hold()
            if stepped.finished:
                self.reconciles.remove(stepped)
                return

    # ------------------------------------------------------------------------------------------ the gardenlets

    @rule()
    def run_gardenlets(self) -> None:
        self.garden.run_gardenlets()

    @precondition(lambda self: self.garden.shoots())
    @rule(pick=picks, state=st.sampled_from(["Succeeded", "Failed", "Error", "Processing"]))
    def reconcile_a_shoot(self, pick: int, state: str) -> None:
        shoots = self.garden.shoots()
        self.garden.reconcile_shoot(shoots[pick % len(shoots)], state)

    @precondition(lambda self: self.garden.managed_seeds())
    @rule(pick=picks)
    def register(self, pick: int) -> None:
        managed_seeds = self.garden.managed_seeds()
        self.garden.register(managed_seeds[pick % len(managed_seeds)])

    @rule(pick=picks, ready=st.booleans())
    def report_a_seed(self, pick: int, ready: bool) -> None:
        seeds = self.garden.seed_names()
        self.garden.report_seed(seeds[pick % len(seeds)], ready=ready)

    @rule(seconds=st.sampled_from([1, 6, 120, 3600]))
    def time_passes(self, seconds: int) -> None:
        self.garden.clock.advance(seconds)

    # ------------------------------------------------------------------------------------------ the tenants

    @precondition(lambda self: self.garden.managed_seeds())
    @rule(pick=picks, shoots=st.integers(1, 4))
    def place(self, pick: int, shoots: int) -> None:
        seeds = self.garden.managed_seeds()
        for _ in range(shoots):
            self._place(seeds[pick % len(seeds)])

    def _place(self, seed: str) -> None:
        self.tenants += 1
        outcome = self.garden.place(seed, f"tenant-{self.tenants}")
        managed_seed = self.garden.get(ObjectKey("managedseed", "garden", seed))
        is_going = managed_seed is not None and "deletionTimestamp" in managed_seed["metadata"]
        is_changed = outcome == "bound" and is_going and seed not in self.by_hand
        assert not is_changed, f"{seed} is on its way out, and takes shoots"

    @rule(pick=picks)
    def leave(self, pick: int) -> None:
        if tenants := self._tenants():
            self.garden.leave(tenants[pick % len(tenants)])

    # ------------------------------------------------------------------------------------------ people

    @rule(replicas=st.integers(0, MOST))
    def scale(self, replicas: int) -> None:
        self.garden.patched(SET, {"spec": {"replicas": replicas}})

    @rule(purpose=st.sampled_from(["evaluation", "production", "infrastructure"]))
    def change_the_shoot_template(self, purpose: str) -> None:
        self.garden.patched(SET, {"spec": {"shootTemplate": {"spec": {"purpose": purpose}}}})

    @rule(note=st.sampled_from(["one", "two"]), partition=st.integers(0, 3))
    def change_the_template(self, note: str, partition: int) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
        template = {"metadata": {"annotations": {"note": note}}}
        self.garden.patched(SET, {"spec": {"template": template, "updateStrategy": strategy}})

    @rule(drain=st.booleans())
    def let_it_drain(self, drain: bool) -> None:
        self.garden.patched(SET, {"spec": {"scaleIn": {"drain": drain}}})

    @precondition(lambda self: not self.reconciles and self.garden.shoots())
    @rule(pick=picks, protected=st.booleans(), priority=st.sampled_from([None, "1", "5", "high"]))
    def annotate(self, pick: int, protected: bool, priority: str | None) -> None:
        shoots = self.garden.shoots()
        annotations = {PROTECT_FROM_DELETION: "true" if protected else None, PRIORITY: priority}
        self.garden.patched(
            ObjectKey("shoot", "garden", shoots[pick % len(shoots)]), {"metadata": {"annotations": annotations}}
        )

    @precondition(lambda self: not self.reconciles and self.garden.managed_seeds())
    @rule(pick=picks)
    def delete_a_managed_seed_by_hand(self, pick: int) -> None:
        managed_seeds = self.garden.managed_seeds()
        name = managed_seeds[pick % len(managed_seeds)]
        try:
            self.garden.deleted(ObjectKey("managedseed", "garden", name))
        except GardenbusError:
            return
        self.removing.add(name)
        self.by_hand.add(name)

    # ------------------------------------------------------------------------------------------ what always holds

    @invariant()
    def bounds_hold(self) -> None:
        if self.garden.get(SET) is None:
            return
        replicas = self._replicas()
        self._check_ordinals(replicas)
        self._check_ready(replicas)
        self._check_going(replicas)

    def _check_ordinals(self, replicas: dict[str, Document]) -> None:
        spec_replicas, status = self.garden.set()["spec"]["replicas"], self.garden.status
        number = status.get("nextReplicaNumber", 0)
        assert number >= self.next_number, f"nextReplicaNumber fell from {self.next_number} to {number}"
        self.next_number = number
        for name, shoot in replicas.items():
            uid = shoot["metadata"]["uid"]
            if name not in self.uids:
                assert ordinal_of(name) < number, f"{name} was made before its number was used up"
                assert len(replicas) <= spec_replicas, f"{name} is one too many of {spec_replicas}"
                self.uids[name] = uid
            assert self.uids[name] == uid, f"the ordinal of {name} was used again"

    def _check_ready(self, replicas: dict[str, Document]) -> None:
        for name in replicas:
            seed = self.garden.get(ObjectKey("seed", "", name))
            conditions = {each["type"]: each["status"] for each in section(seed or {}, "status").get("conditions", [])}
            if conditions.get("GardenletReady") == "True":
                self.ready_once.add(name)
        factory = [
            name
            for name, shoot in replicas.items()
            if name not in self.ready_once and "deletionTimestamp" not in shoot["metadata"] and not self._is_going(name)
        ]
        assert len(factory) <= 1, f"several replicas are in the making: {factory}"

    def _check_going(self, replicas: dict[str, Document]) -> None:
        wanted = self.garden.set()["spec"]["replicas"]
        for name, shoot in replicas.items():
            seed = self.garden.get(ObjectKey("seed", "", name))
            is_going = self._is_going(name) or "deletionTimestamp" in section(seed or {}, "metadata")
            if is_going and name not in self.by_hand:
                assert not self.garden.usage(name), f"{name} goes while {self.garden.usage(name)} shoots are on it"
            deleting = self._is_going(name) or "deletionTimestamp" in shoot["metadata"]
            if not deleting or name in self.removing:
                continue
            self.removing.add(name)
            protected = section(shoot, "metadata", "annotations").get(PROTECT_FROM_DELETION) == "true"
            assert not protected, f"{name} is protected, and goes"
            others = [each for each in replicas if each != name]
            assert len(others) >= wanted, f"{name} goes, though {wanted} are wanted and {len(others)} are left"

    def _is_going(self, name: str) -> bool:
        managed_seed = self.garden.get(ObjectKey("managedseed", "garden", name))
        return managed_seed is not None and "deletionTimestamp" in managed_seed["metadata"]

    def _replicas(self) -> dict[str, Document]:
        owner = self.garden.set()
        documents = [stored.document() for stored in self.garden.objects("shoot", "garden")]
        return {each["metadata"]["name"]: each for each in documents if controls(owner, each)}

    def _tenants(self) -> list[str]:
        return [stored.key.name for stored in self.garden.objects("shoot", "garden-dev")]

    # ------------------------------------------------------------------------------------------ how it ends

    def teardown(self) -> None:
        if self.garden.get(SET) is None:
            return
        for stepped in self.reconciles:
            stepped.kill()
        for name in self._tenants():
            self.garden.leave(name)
        for name in self._replicas():
            annotations = {PROTECT_FROM_DELETION: None, PRIORITY: None}
            self.garden.patched(ObjectKey("shoot", "garden", name), {"metadata": {"annotations": annotations}})
        self.garden.run_until_stable()
        self._check_settled()

    def _check_settled(self) -> None:
        managed_seed_set, status = self.garden.set(), self.garden.status
        wanted = managed_seed_set["spec"]["replicas"]
        counts = {name: status.get(name, 0) for name in ("replicas", "readyReplicas", "observedGeneration")}
        generation = managed_seed_set["metadata"]["generation"]
        assert counts == {"replicas": wanted, "readyReplicas": wanted, "observedGeneration": generation}, status
        assert "pendingReplica" not in status
        assert len(self._replicas()) == wanted
        partition = section(managed_seed_set, "spec", "updateStrategy", "rollingUpdate").get("partition", 0)
        revision = status["updateRevision"].removeprefix("crowd-")
        for name, shoot in self._replicas().items():
            if ordinal_of(name) >= partition:
                assert shoot["metadata"]["labels"]["seedmanagement.gardener.cloud/revision"] == revision
            annotations: dict[str, Any] = section(
                self.garden.now(ObjectKey("seed", "", name)), "metadata", "annotations"
            )
            assert REMOVAL_ANNOTATION not in annotations
            assert CORDONED_BY not in annotations


def test_a_set_keeps_its_promises_whatever_happens():
    run_state_machine_as_test(
        SetMachine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=EXAMPLES <= 25,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
            phases=list(Phase) if EXAMPLES <= 25 else [Phase.generate],  # long runs find, short ones shrink
        ),
    )
