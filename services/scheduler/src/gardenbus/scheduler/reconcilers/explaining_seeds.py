"""Answers whether a seed takes shoots, rule by rule, and which of those that wait it could take."""

from collections.abc import Sequence
from typing import Any

import structlog

from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Request
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.shoots import Shoot
from gardenbus.scheduler.reconcilers.explaining import failure, success
from gardenbus.scheduling.current import CurrentLandscape
from gardenbus.scheduling.landscape import SeedCandidate
from gardenbus.scheduling.request import SchedulingRequest, request_of, skipped_because
from gardenbus.scheduling.seed_questions import seed_rules, takers

_log = structlog.stdlib.get_logger()

LOOKS = 1_000
"""Waiting shoots that are looked at, those refused longest ago first."""

NAMED = 100
"""Waiting shoots that are named in one answer."""


class SeedExplainer:
    """Handles requests on `Subjects.explain_seed`; the answer has the form of all answers of the API."""

    def __init__(self, *, store: Store, current: CurrentLandscape, scheduler_name: str) -> None:
        self._store = store
        self._current = current
        self._scheduler_name = scheduler_name

    async def __call__(self, request: Request) -> bytes:
        """Explain one seed as it is seen now."""
        name = request.subject.split(".explain-seed.", 1)[-1]
        snapshot = self._current.snapshot()
        candidate = snapshot.landscape.seeds_by_name.get(name)
        if candidate is None:
            return failure(404, "NotFound", f"seed {name} is not there")
        try:
            waiting = await self._waiting_for(name)
        except GardenbusError as error:
            return failure(error.code, error.reason, error.message)
        usage = snapshot.usage.get(name, 0)
        rules = seed_rules(candidate, usage)
        return success(
            {
                "seed": name,
                "usable": all(rule.ok for rule in rules),
                "rules": rules,
                "used": usage,
                "allocatable": candidate.capacity,
                **_described(candidate),
                "waiting": [{"namespace": key.namespace, "name": key.name} for key in waiting[:NAMED]],
                "waitingTotal": len(waiting),
            }
        )

    async def _waiting_for(self, seed: str) -> Sequence[ObjectKey]:
        """Those that wait for this scheduler and could go there, if only it were usable and had room."""
        found = await self._store.waiting_shoots(self._scheduler_name, limit=LOOKS)
        requests: list[tuple[ObjectKey, SchedulingRequest]] = []
        for stored in await self._store.get_many([each.key for each in found]):
            if stored is None:
                continue
            shoot = Shoot.from_document(stored.encoded())
            if not skipped_because(shoot, self._scheduler_name):
                filters = self._current.filters
                document = stored.document() if filters else None
                requests.append((stored.key, request_of(shoot, document, filters)))
        snapshot = self._current.snapshot()
        if seed not in snapshot.landscape.seeds_by_name:
            return ()
        try:
            could = takers([request for _, request in requests], seed, snapshot)
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
