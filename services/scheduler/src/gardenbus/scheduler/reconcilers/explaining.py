"""Answers why a shoot is, would be or would not be placed: every seed with its rank or the rule against it."""

import msgspec

from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Request
from gardenbus.common.ports.store import Store
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.resources.shoots import Shoot
from gardenbus.scheduler.reconcilers.shoots import CIRCULAR, hosted_rejections, naming
from gardenbus.scheduling.current import CurrentLandscape
from gardenbus.scheduling.landscape import Snapshot
from gardenbus.scheduling.moving import hosted_seeds
from gardenbus.scheduling.outcome import Placement, Step
from gardenbus.scheduling.placement import explain
from gardenbus.scheduling.request import request_of, skipped_because

_encode = msgspec.json.Encoder().encode


class Explainer:
    """Handles requests on `Subjects.explain_of`; the answer has the form of all answers of the API."""

    def __init__(self, *, store: Store, current: CurrentLandscape, scheduler_name: str) -> None:
        self._scheduler_name = scheduler_name
        self._store = store
        self._current = current

    async def __call__(self, request: Request) -> bytes:
        """Explain one shoot as if it were to be placed now."""
        namespace, _, name = request.subject.split(".explain.", 1)[-1].partition(".")
        key = ObjectKey("shoot", namespace, name)
        try:
            stored = await self._store.get(key)
            if stored is None:
                return _failure(404, "NotFound", f"{key} is not there")
            hosted = await self._hosted(key)
            return _encode({"ok": True, "result": self._explained(stored.document(), hosted), "warnings": []})
        except GardenbusError as error:
            return _failure(error.code, error.reason, error.message)

    def _explained(self, document: Document, hosted: frozenset[str]) -> object:
        shoot = Shoot.from_document(document)
        snapshot = self._current.snapshot()
        for seed in {shoot.spec.seed_name, shoot.status.seed_name} & snapshot.usage.keys():
            snapshot.usage[seed] = max(snapshot.usage[seed] - 1, 0)  # it does not stand in its own way
        hosted &= snapshot.landscape.seeds_by_name.keys()
        left = Snapshot(snapshot.landscape.without(hosted), snapshot.usage) if hosted else snapshot
        explanation = explain(request_of(shoot, document, self._current.filters), left)
        outcome = naming(hosted, explanation.outcome) if hosted else explanation.outcome
        barred = (Step(CIRCULAR, len(hosted), len(left.landscape.seeds)),) if hosted else ()
        rejections = sorted((*explanation.rejections, *hosted_rejections(hosted)), key=lambda each: each.seed)
        return {
            "placed": shoot.spec.seed_name or None,
            "skipped": skipped_because(shoot, self._scheduler_name) or None,
            "wouldChoose": outcome.seed if isinstance(outcome, Placement) else None,
            "message": None if isinstance(outcome, Placement) else outcome.message,
            "strategy": explanation.strategy,
            "funnel": (*barred, *explanation.funnel),
            "ranking": explanation.ranking,
            "rejections": rejections,
        }

    async def _hosted(self, key: ObjectKey) -> frozenset[str]:
        """The seeds that a shoot hosts, where it can never be."""
        if key.namespace != GARDEN_NAMESPACE:
            return frozenset()
        managed_seeds = await self._in_garden("managedseed")
        return hosted_seeds(await self._in_garden("shoot"), managed_seeds).get(key, frozenset())

    async def _in_garden(self, kind: str) -> list[Document]:
        documents: list[Document] = []
        token: str | None = None
        while True:
            page = await self._store.list_page(kind, GARDEN_NAMESPACE, continue_token=token)
            documents += [stored.document() for stored in page.objects]
            token = page.continue_token
            if token is None:
                return documents


def _failure(code: int, reason: str, message: str) -> bytes:
    return _encode({"ok": False, "error": {"code": code, "reason": reason, "message": message, "details": []}})
