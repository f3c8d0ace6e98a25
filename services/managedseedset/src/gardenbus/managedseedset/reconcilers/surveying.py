"""Reads all that a decision about a set is made on: the set first, then everything about it, from the store.

What was read of a replica may be older than what is there; it is never older than the set that was read before it.
Every change that this service makes to a replica is announced in the set's status first, so a look that missed one
cannot be written.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.machinery.informer import Informer
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.kinds import REVISION_KIND
from gardenbus.managedseedset.decide.actions import DrainUnknown
from gardenbus.managedseedset.decide.actuator import World
from gardenbus.managedseedset.decide.ownership import Family, family_of
from gardenbus.managedseedset.decide.shrinking import Drain, Relocation
from gardenbus.managedseedset.reconcilers.counters import DRAINS_PLANNED
from gardenbus.scheduling.current import CurrentLandscape
from gardenbus.scheduling.landscape import Snapshot
from gardenbus.scheduling.moving import Move, Stay, hosted_seeds, plan_moves


class Surroundings(NamedTuple):
    """What was read about one set."""

    world: World
    family: Family
    shoots: Sequence[Document]
    managed_seeds: Sequence[Document]


class Surveyor:
    """Reads sets and what is around them."""

    def __init__(self, store: Store, informer: Informer, landscape: CurrentLandscape, clock: Clock) -> None:
        self._store = store
        self._informer = informer
        self._landscape = landscape
        self._clock = clock

    async def survey(self, stored: StoredObject) -> Surroundings:
        """Everything about a set that was just read. Raises Unavailable."""
        managed_seed_set, namespace = stored.document(), stored.key.namespace
        shoots = await self._all("shoot", namespace)
        managed_seeds = await self._all("managedseed", namespace)
        revisions = await self._all(REVISION_KIND.lower(), namespace)
        names = sorted({str(section(each, "metadata").get("name")) for each in shoots})
        found = await self._store.get_many([ObjectKey("seed", "", name) for name in names]) if names else ()
        seeds = {each.key.name: each.document() for each in found if each is not None}
        usage = (await self._store.usage()).seeds
        family = family_of(managed_seed_set, shoots=shoots, managed_seeds=managed_seeds, seeds=seeds, usage=usage)
        world = World(
            managed_seed_set=managed_seed_set,
            replicas=family.replicas,
            taken=family.taken | self._seeds_called_like(stored.key.name, family),
            revisions=tuple(revisions),
            now=self._clock.now(),
        )
        return Surroundings(world, family, shoots, managed_seeds)

    async def drain_of(self, wanted: DrainUnknown, around: Surroundings) -> Drain:
        """Where the shoots of a seed could go, by the scheduler's own decisions. Raises Unavailable."""
        DRAINS_PLANNED.inc()
        await self._ask_usage()
        keys = await self._store.shoots_on(wanted.seed)
        found = await self._store.get_many(list(keys)) if keys else ()
        shoots = [each.document() for each in found if each is not None]
        hosting = hosted_seeds(around.shoots, around.managed_seeds)
        snapshot = self._landscape.snapshot()
        narrowed = Snapshot(snapshot.landscape.without(frozenset(wanted.avoid)), snapshot.usage)
        drain = _drain(plan_moves(shoots, narrowed, source=wanted.seed, forbidden=hosting))
        if drain.stuck and wanted.avoid:
            drain = _drain(plan_moves(shoots, snapshot, source=wanted.seed, forbidden=hosting))
        return drain

    async def _ask_usage(self) -> None:
        known = self._landscape.usage_version
        usage = await self._store.usage(known)
        if usage.version < known:
            self._landscape.usage_lost(await self._store.usage(0))
        else:
            self._landscape.usage_told(usage)

    async def _all(self, kind: str, namespace: str) -> list[Document]:
        documents: list[Document] = []
        token: str | None = None
        while True:
            page = await self._store.list_page(kind, namespace, continue_token=token)
            documents += [stored.document() for stored in page.objects]
            token = page.continue_token
            if token is None:
                return documents

    def _seeds_called_like(self, name: str, family: Family) -> set[str]:
        own = {replica.name for replica in family.replicas}
        seeds = self._informer.objects("seed")
        return {key.name for key in seeds if key.name.startswith(f"{name}-")} - own


def _drain(planned: Sequence[Move | Stay]) -> Drain:
    moves: list[Relocation] = []
    stuck: list[tuple[ObjectKey, str]] = []
    under_way = 0
    for each in planned:
        if isinstance(each, Move):
            moves.append(Relocation(ObjectKey("shoot", each.namespace, each.name), each.target))
        elif each.waits:
            under_way += 1
        else:
            stuck.append((ObjectKey("shoot", each.namespace, each.name), each.reason))
    return Drain(moves=tuple(moves), under_way=under_way, stuck=tuple(stuck))
