"""Reads the input of a decision about a set: the set first, then all that belongs to it, from the store.

What was read of a replica may be older than the store; it is never older than the set that was read before it. Every
change that this service makes to a replica is announced in the set's status first, so a decision that missed one
cannot be written.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.garden.moves import Immovable, Move
from gardenbus.common.api.garden.scheduling_requirements import resolved_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.kinds import REVISION_KIND
from gardenbus.common.controller.informer import Informer
from gardenbus.common.controller.listing import list_all
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.managedseedset.domain.actions import DrainForecastNeeded
from gardenbus.managedseedset.domain.actuator import ReconcileInput
from gardenbus.managedseedset.domain.ownership import SetOwnership, classify_owned
from gardenbus.managedseedset.domain.scale_in import DrainForecast, DrainMove
from gardenbus.managedseedset.metrics import DRAINS_PLANNED
from gardenbus.scheduling.cache import SchedulingCache
from gardenbus.scheduling.descheduling.relocation import hosted_seeds, plan_moves
from gardenbus.scheduling.group_index import read_groups


class SetState(NamedTuple):
    """State of one set and its namespace."""

    inputs: ReconcileInput
    ownership: SetOwnership
    shoots: Sequence[Document]
    managed_seeds: Sequence[Document]


class StateCollector:
    """Reads sets with all that belongs to them."""

    def __init__(self, store: Store, informer: Informer, landscape: SchedulingCache, clock: Clock) -> None:
        self._store = store
        self._informer = informer
        self._landscape = landscape
        self._clock = clock

    async def collect(self, stored: StoredObject) -> SetState:
        """Collect the state of a set that was just read. Raises Unavailable."""
        managed_seed_set, namespace = stored.document(), stored.key.namespace
        shoots = await self._all("shoot", namespace)
        managed_seeds = await self._all("managedseed", namespace)
        revisions = await self._all(REVISION_KIND.lower(), namespace)
        names = sorted({str(section(each, "metadata").get("name")) for each in shoots})
        found = await self._store.get_many([ObjectKey("seed", "", name) for name in names]) if names else ()
        seeds = {each.key.name: each.document() for each in found if each is not None}
        usage = await self._usage()
        ownership = classify_owned(
            managed_seed_set, shoots=shoots, managed_seeds=managed_seeds, seeds=seeds, usage=usage
        )
        inputs = ReconcileInput(
            managed_seed_set=managed_seed_set,
            replicas=ownership.replicas,
            used_names=ownership.used_names | self._seeds_with_prefix(stored.key.name, ownership),
            revisions=tuple(revisions),
            now=self._clock.now(),
        )
        return SetState(inputs, ownership, shoots, managed_seeds)

    async def _usage(self) -> Mapping[str, int]:
        """Number of shoots on each seed, with those that run there and a restored store does not know."""
        await self._landscape.refresh_usage(self._store)
        return self._landscape.usage

    async def forecast_drain(self, wanted: DrainForecastNeeded, collected: SetState) -> DrainForecast:
        """Forecast where the shoots of a seed would go, by the decisions of their schedulers. Raises Unavailable."""
        DRAINS_PLANNED.inc()
        self._landscape.expire_annotations(self._clock.now())
        await self._landscape.refresh_usage(self._store)
        keys = await self._store.shoots_on(wanted.seed)
        found = await self._store.get_many(list(keys)) if keys else ()
        shoots = [each.document() for each in found if each is not None]
        hosting = hosted_seeds(collected.shoots, collected.managed_seeds)
        rules = ((str(section(each, "metadata").get("namespace")), resolved_of(each).group_rules) for each in shoots)
        groups = await read_groups(self._store, rules)
        snapshot = msgspec.structs.replace(self._landscape.snapshot(), groups=groups)
        landscapes, avoid = self._landscape.landscapes, frozenset(wanted.avoid)
        narrowed = msgspec.structs.replace(snapshot, landscape=snapshot.landscape.without(avoid))
        narrowed_by_scheduler = {name: each.without(avoid) for name, each in landscapes.items()}
        drain = _drain(
            plan_moves(shoots, narrowed, source=wanted.seed, forbidden=hosting, landscapes=narrowed_by_scheduler)
        )
        if drain.stuck and wanted.avoid:
            drain = _drain(plan_moves(shoots, snapshot, source=wanted.seed, forbidden=hosting, landscapes=landscapes))
        return drain

    async def _all(self, kind: str, namespace: str) -> list[Document]:
        return [stored.document() for stored in await list_all(self._store, kind, namespace)]

    def _seeds_with_prefix(self, name: str, ownership: SetOwnership) -> set[str]:
        own = {replica.name for replica in ownership.replicas}
        seeds = self._informer.objects("seed")
        return {key.name for key in seeds if key.name.startswith(f"{name}-")} - own


def _drain(planned: Sequence[Move | Immovable]) -> DrainForecast:
    moves: list[DrainMove] = []
    stuck: list[tuple[ObjectKey, str]] = []
    under_way = 0
    for each in planned:
        if isinstance(each, Move):
            moves.append(DrainMove(ObjectKey("shoot", each.namespace, each.name), each.target))
        elif each.waits:
            under_way += 1
        else:
            stuck.append((ObjectKey("shoot", each.namespace, each.name), each.reason))
    return DrainForecast(moves=tuple(moves), under_way=under_way, stuck=tuple(stuck))
