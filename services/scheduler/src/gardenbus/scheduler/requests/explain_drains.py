"""Explains a drain: where the shoots of a seed would move, by this scheduler's profiles, and which would stay."""

from collections.abc import Collection, Iterable, Sequence

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.migration_feasibility import hand_over_obstacle
from gardenbus.common.api.garden.moves import ExplainedDrain, Immovable, Move
from gardenbus.common.api.garden.scheduling_requirements import resolved_of
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER, Shoot
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.responses import failure, success
from gardenbus.common.errors import GardenbusError, InvalidResource, NotFound
from gardenbus.common.ports.bus import Request
from gardenbus.common.ports.store import Store
from gardenbus.scheduler.watch.hosting import read_hosting
from gardenbus.scheduling.cache import SchedulingCache
from gardenbus.scheduling.descheduling.relocation import immovable_reason, plan_moves
from gardenbus.scheduling.group_index import read_groups
from gardenbus.scheduling.snapshot import Snapshot

MOST_PLANNED = 100
"""Shoots of one plan: the scheduler places none while it plans. The others are planned once these have moved."""


class DrainExplainHandler:
    """Handles requests on `Subjects.explain_drain`; the response has the form of all responses of the API."""

    def __init__(self, *, store: Store, cache: SchedulingCache, scheduler_name: str) -> None:
        self._store = store
        self._cache = cache
        self._scheduler_name = scheduler_name

    async def __call__(self, request: Request) -> bytes:
        """Plan the moves of a seed's shoots as if it were drained now; nothing is changed."""
        seed = request.subject.split(".explain-drain.", 1)[-1]
        try:
            if seed not in self._cache.snapshot(self._scheduler_name).landscape.seeds_by_name:
                return failure(NotFound(f"seed {seed} not found"))
            shoots = await self._shoots_on(seed)
            hosting = await read_hosting(self._store)
            rules = ((_key_of(each).namespace, resolved_of(each).group_rules) for each in shoots)
            groups = await read_groups(self._store, rules)
        except GardenbusError as error:
            return failure(error)
        landscapes = self._cache.landscapes
        movable, stays = _by_movability(shoots, seed, {DEFAULT_SCHEDULER, *landscapes})
        seen = self._cache.snapshot(self._scheduler_name)
        source = seen.landscape.seeds_by_name.get(seed)
        snapshot = Snapshot(seen.landscape, seen.usage, groups)
        planned = plan_moves(movable[:MOST_PLANNED], snapshot, source=seed, forbidden=hosting, landscapes=landscapes)
        stays += [each for each in planned if isinstance(each, Immovable)]
        return success(
            ExplainedDrain(
                seed,
                obstacle=hand_over_obstacle(source.document) if source is not None else "it is gone",
                shoots=len(shoots),
                moves=[each for each in planned if isinstance(each, Move)],
                stays=sorted(stays, key=lambda each: (each.namespace, each.name)),
                not_planned=max(0, len(movable) - MOST_PLANNED),
            )
        )

    async def _shoots_on(self, seed: str) -> Sequence[Document]:
        keys = sorted(await self._store.shoots_on(seed))
        found = await self._store.get_many(keys) if keys else ()
        return [stored.document() for stored in found if stored is not None]


def _by_movability(
    shoots: Iterable[Document], seed: str, schedulers: Collection[str]
) -> tuple[list[Document], list[Immovable]]:
    """Shoots that may move by the rules of the schedulers, and those that stay whatever other seeds are like."""
    movable: list[Document] = []
    stays: list[Immovable] = []
    for document in shoots:
        try:
            reason = immovable_reason(Shoot.from_document(document), seed, schedulers)
        except InvalidResource as error:
            reason = (f"its manifest cannot be read: {error.message}", False)
        if reason is None:
            movable.append(document)
        else:
            key = _key_of(document)
            stays.append(Immovable(key.namespace, key.name, *reason))
    return movable, stays


def _key_of(shoot: Document) -> ObjectKey:
    return ObjectKey("shoot", shoot["metadata"].get("namespace") or "", shoot["metadata"]["name"])
