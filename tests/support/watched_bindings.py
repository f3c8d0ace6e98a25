"""A store in memory that looks at each write to bindings and Works: whether it may be, on the state before it."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.fleet.placement_parts import DisruptionBudget, ResourceBinding
from gardenbus.common.api.fleet.placements import PARENT_LABEL, Placement
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.store import CreateResult, Creation, Superseded
from gardenbus.fleet.availability import has_failed, is_diff_reported, may_be_placed, readiness
from gardenbus.fleet.binding_states import ABSENT, DELETING, TRANSITIONS, state_of
from gardenbus.fleet.budgets import BindingCounts, RolloutBudget, budget_of, target_of
from gardenbus.placement.domain.eviction import availability_of
from tests.support.memory.store import MemoryStore

BINDING = "clusterresourcebinding"
STEPS = frozenset((each.old, each.new) for each in TRANSITIONS)


class WatchedStore(MemoryStore):
    """Raises AssertionError at a write that breaks an invariant; dies (Unavailable) when `writes_left` is used up."""

    writes_left = -1
    gives_way = False
    """Whether others may write between any two calls."""

    evicting = ""
    """The cluster that an eviction may take off, whatever a rollout may do."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.steps: Counter[tuple[str, str]] = Counter()

    async def get_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        await self._give_way()
        return await super().get_many(keys)

    async def create(self, document: Document, **options: Any) -> StoredObject | Superseded:
        await self._write()
        created = await super().create(document, **options)
        self._check_creation(document)
        return created

    async def create_many(self, creations: Sequence[Creation]) -> Sequence[CreateResult]:
        return await super().create_many(creations)

    async def update(self, base: StoredObject, document: Document, **options: Any) -> StoredObject | Superseded:
        await self._write()
        if base.key.kind != BINDING:
            return await super().update(base, document, **options)
        before = self._bindings()
        written = await super().update(base, document, **options)
        self._check_step(base.key, before)
        return written

    async def delete(self, base: StoredObject, **options: Any) -> StoredObject | Superseded | None:
        await self._write()
        before = self._bindings()
        deleted = await super().delete(base, **options)
        if base.key.kind == BINDING:
            self._check_step(base.key, before)
        return deleted

    async def _write(self) -> None:
        if self.writes_left == 0:
            raise Unavailable("this process died")
        self.writes_left -= 1
        await self._give_way()

    async def _give_way(self) -> None:
        if self.gives_way:
            await asyncio.sleep(0)

    def _bindings(self) -> dict[ObjectKey, ResourceBinding]:
        rows = self.state.rows.of_kind(BINDING).items()
        return {key: ResourceBinding.from_document(stored.encoded()) for key, stored in rows}

    def _check_creation(self, document: Document) -> None:
        metadata = section(document, "metadata")
        if document["kind"] == "ClusterResourceBinding":
            placement = self.state.rows.get(ObjectKey("clusterresourceplacement", "", metadata["labels"][PARENT_LABEL]))
            assert placement is not None, "a binding came about without a placement"
            assert section(document, "spec")["state"] == "Scheduled"
        if document["kind"] == "Work":
            uid = metadata["ownerReferences"][0]["uid"]
            owners = [each for each in self._bindings().values() if each.metadata.uid == uid]
            assert owners, "a Work came about without a binding"
            assert may_be_placed(owners[0]), "a Work came about without a Bound binding"
            assert not owners[0].is_deleting, "a Work came about while its binding was leaving"

    def _check_step(self, key: ObjectKey, before: dict[ObjectKey, ResourceBinding]) -> None:
        old, new = before[key], self._bindings().get(key)
        was, becomes = state_of(old), state_of(new)
        if was != becomes:
            assert (was, becomes) in STEPS, f"{key} went from {was} to {becomes}"
            self.steps[was, becomes] += 1
        placement = self.state.rows.get(ObjectKey("clusterresourceplacement", "", old.metadata.labels[PARENT_LABEL]))
        if becomes == ABSENT:
            owned = [each for each in self.state.owned(old.metadata.uid) if each.kind == "work"]
            assert not owned, f"{key} went before its Works"
        if placement is None or placement.stored.is_deleting or new is None:
            return
        view = Placement.from_document(placement.stored.encoded())
        if becomes == DELETING and was != DELETING and old.spec.target_cluster == self.evicting:
            self._check_eviction(view, [*before.values()])
        elif becomes == DELETING and was != DELETING:
            self._check_removal(view, old, [*before.values()])
        elif (was, becomes) == ("Scheduled", "Bound"):
            assert self._budget(view, [*before.values()]).additions > 0, f"{key} was bound beyond maxSurge"
        elif (was, becomes) == (
            "Bound",
            "Bound",
        ) and old.spec.resource_snapshot_name != new.spec.resource_snapshot_name:
            self._check_removal(view, old, [*before.values()])

    def _check_removal(self, placement: Placement, old: ResourceBinding, bindings: list[ResourceBinding]) -> None:
        if self._is_ready(placement, old):
            assert self._budget(placement, bindings).removals > 0, f"{old.name} went beyond maxUnavailable"

    def _check_eviction(self, placement: Placement, bindings: list[ResourceBinding]) -> None:
        row = self.state.rows.get(ObjectKey("clusterresourceplacementdisruptionbudget", "", placement.metadata.name))
        target = next(each for each in bindings if each.spec.target_cluster == self.evicting and not each.is_deleting)
        if row is not None and not has_failed(target):
            budget = DisruptionBudget.from_document(row.stored.encoded())
            assert availability_of(placement, bindings, budget).allowed > 0, "an eviction went beyond its budget"

    def _budget(self, placement: Placement, bindings: list[ResourceBinding]) -> RolloutBudget:
        """As the rules compute it, counted here anew."""
        chosen = [each for each in bindings if each.spec.state in ("Scheduled", "Bound")]
        handed = [each for each in bindings if each.spec.state in ("Bound", "Unscheduled")]
        ready = [each for each in handed if self._is_ready(placement, each)]
        may = [each for each in handed if not has_failed(each) and not is_diff_reported(each)]
        leaving = [each for each in ready if each.is_deleting]
        rolling = placement.spec.strategy.rolling_update
        counts = BindingCounts(target_of(placement, len(chosen)), len(ready), len(leaving), len(may))
        return budget_of(counts, max_unavailable=rolling.max_unavailable, max_surge=rolling.max_surge)

    def _is_ready(self, placement: Placement, binding: ResourceBinding) -> bool:
        period = placement.spec.strategy.rolling_update.unavailable_period_seconds
        now = self.state.clock.now().timestamp()
        return readiness(binding, unavailable_period_seconds=period, now=now).is_ready
