"""Explains a seed: whether it takes shoots, check by check, and the waiting shoots that it could take."""

from collections.abc import Sequence
from typing import Any

import structlog

from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.responses import failure, success
from gardenbus.common.errors import GardenbusError, NotFound
from gardenbus.common.ports.bus import Request
from gardenbus.common.ports.store import Store
from gardenbus.scheduler.domain.explain.seed_checks import checks_of_seed, schedulable_on
from gardenbus.scheduling.cache import SchedulingCache
from gardenbus.scheduling.equivalence_classes import SchedulingRequest, request_of, skip_reason
from gardenbus.scheduling.seed_candidates import SeedCandidate

_log = structlog.stdlib.get_logger()

MAX_EXAMINED = 1_000
"""Waiting shoots that are examined, those marked unschedulable longest ago first."""

MAX_NAMED = 100
"""Waiting shoots that are named in one response."""


class SeedExplainHandler:
    """Handles requests on `Subjects.explain_seed`; the response has the form of all responses of the API."""

    def __init__(self, *, store: Store, cache: SchedulingCache, scheduler_name: str) -> None:
        self._store = store
        self._cache = cache
        self._scheduler_name = scheduler_name

    async def __call__(self, request: Request) -> bytes:
        """Explain one seed as the cache has it."""
        name = request.subject.split(".explain-seed.", 1)[-1]
        snapshot = self._cache.snapshot(self._scheduler_name)
        candidate = snapshot.landscape.seeds_by_name.get(name)
        if candidate is None:
            return failure(NotFound(f"seed {name} not found"))
        try:
            waiting = await self._waiting_for(name)
        except GardenbusError as error:
            return failure(error)
        usage = snapshot.usage.get(name, 0)
        rules = checks_of_seed(candidate, usage, snapshot.usage.taken(name))
        return success(
            {
                "seed": name,
                "usable": all(rule.ok for rule in rules),
                "rules": rules,
                "used": usage,
                "allocatable": candidate.capacity,
                **_described(candidate),
                "waiting": [{"namespace": key.namespace, "name": key.name} for key in waiting[:MAX_NAMED]],
                "waitingTotal": len(waiting),
            }
        )

    async def _waiting_for(self, seed: str) -> Sequence[ObjectKey]:
        """The shoots that wait for this scheduler and could go there, if it were usable and had room."""
        found = await self._store.unschedulable_shoots(self._scheduler_name, limit=MAX_EXAMINED)
        requests: list[tuple[ObjectKey, SchedulingRequest]] = []
        landscape = self._cache.snapshot(self._scheduler_name).landscape
        for stored in await self._store.get_many([each.key for each in found]):
            if stored is None:
                continue
            shoot = Shoot.from_document(stored.encoded())
            if not skip_reason(shoot, self._scheduler_name):
                document = stored.document() if landscape.filters else None
                request = request_of(shoot, document, landscape.filters, reads_purpose=landscape.reads_purpose)
                requests.append((stored.key, request))
        snapshot = self._cache.snapshot(self._scheduler_name)
        if seed not in snapshot.landscape.seeds_by_name:
            return ()
        try:
            could = schedulable_on([request for _, request in requests], seed, snapshot)
        except Exception:  # noqa: BLE001  a user's own filter may raise anything
            _log.exception("decision.failed", seed=seed)
            return ()
        return [key for (key, _), takes in zip(requests, could, strict=True) if takes]


def _described(candidate: SeedCandidate) -> dict[str, Any]:
    spec = candidate.seed.spec
    return {
        "provider": spec.provider.type,
        "region": spec.provider.region,
        "cordoned": not spec.settings.scheduling.visible,
        "taints": spec.taints,
        "conditions": candidate.seed.status.conditions,
    }
