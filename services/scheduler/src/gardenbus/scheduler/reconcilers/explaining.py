"""Answers why a shoot is, would be or would not be placed: every seed with its rank or the rule against it."""

from typing import Any

import msgspec

from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Bus, Request
from gardenbus.common.ports.store import Recorded, Store
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey, Subjects
from gardenbus.common.resources.shoots import Shoot
from gardenbus.scheduler.reconcilers.hosting import CIRCULAR, hosted_rejections, naming
from gardenbus.scheduling.current import CurrentLandscape
from gardenbus.scheduling.landscape import Snapshot
from gardenbus.scheduling.moving import hosted_seeds
from gardenbus.scheduling.outcome import Placement, Ranked, Step
from gardenbus.scheduling.placement import explain
from gardenbus.scheduling.recording import told
from gardenbus.scheduling.remedies import remedies
from gardenbus.scheduling.request import request_of, skipped_because

_encode = msgspec.json.Encoder().encode


class Explainer:
    """Handles requests on `Subjects.explain_of`; the answer has the form of all answers of the API."""

    def __init__(
        self, *, store: Store, bus: Bus, subjects: Subjects, current: CurrentLandscape, scheduler_name: str
    ) -> None:
        self._scheduler_name = scheduler_name
        self._store = store
        self._bus = bus
        self._subjects = subjects
        self._current = current

    async def __call__(self, request: Request) -> bytes:
        """Explain one shoot as if it were to be placed now."""
        namespace, _, name = request.subject.split(".explain.", 1)[-1].partition(".")
        key = ObjectKey("shoot", namespace, name)
        try:
            stored = await self._store.get(key)
            if stored is None:
                return failure(404, "NotFound", f"{key} is not there")
            hosted = await self._hosted(key)
            is_placed = bool(stored.parts.seed_name)
            recorded = await self._store.recorded(key) if is_placed else None
            next_attempt = None if is_placed else await self._next_attempt(key)
            explained = self._explained(stored.document(), hosted)
        except GardenbusError as error:
            return failure(error.code, error.reason, error.message)
        return success({**explained, "nextAttempt": next_attempt, "recorded": _told(recorded)})

    def _explained(self, document: Document, hosted: frozenset[str]) -> dict[str, Any]:
        shoot = Shoot.from_document(document)
        snapshot = self._current.snapshot()
        for seed in {shoot.spec.seed_name, shoot.status.seed_name} & snapshot.usage.keys():
            snapshot.usage[seed] = max(snapshot.usage[seed] - 1, 0)  # it does not stand in its own way
        hosted &= snapshot.landscape.seeds_by_name.keys()
        left = Snapshot(snapshot.landscape.without(hosted), snapshot.usage) if hosted else snapshot
        request = request_of(shoot, document, self._current.filters)
        explanation = explain(request, left)
        outcome = naming(hosted, explanation.outcome) if hosted else explanation.outcome
        barred = (Step(CIRCULAR, len(hosted), len(left.landscape.seeds)),) if hosted else ()
        rejections = sorted((*explanation.rejections, *hosted_rejections(hosted)), key=lambda each: each.seed)
        is_refused = not isinstance(outcome, Placement)
        return {
            "placed": shoot.spec.seed_name or None,
            "skipped": skipped_because(shoot, self._scheduler_name) or None,
            "wouldChoose": None if is_refused else outcome.seed,
            "message": outcome.message if is_refused else None,
            "strategy": explanation.strategy,
            "seeds": len(snapshot.landscape.seeds),
            "funnel": (*barred, *explanation.funnel),
            "ranking": [_ranked(each) for each in explanation.ranking],
            "rejections": rejections,
            "wakesOn": remedies(request, left) if is_refused else (),
        }

    async def _next_attempt(self, key: ObjectKey) -> str | None:
        """When the timer of a shoot that waits is due (RFC 3339)."""
        later = self._subjects.later(self._subjects.scheduling(self._scheduler_name, key))
        timer = await self._bus.last(self._subjects.stream("QUEUES"), later)
        how, _, due = (timer.headers.get("Nats-Schedule", "") if timer is not None else "").partition(" ")
        return due if how == "@at" else None

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


def _ranked(ranked: Ranked) -> dict[str, Any]:
    """One seed of the ranking, in the words of the answer's first form and of its present one."""
    return {
        "seed": ranked.seed,
        "place": ranked.place,
        "rank": ranked.place,
        "distance": ranked.distance,
        "usage": ranked.usage,
        "used": ranked.usage,
        "capacity": ranked.capacity,
        "allocatable": ranked.capacity,
    }


def _told(recorded: Recorded | None) -> object:
    return told(recorded.grounds, recorded.at) if recorded is not None else None


def success(result: object) -> bytes:
    """An answer as all answers of the API are."""
    return _encode({"ok": True, "result": result, "warnings": []})


def failure(code: int, reason: str, message: str) -> bytes:
    """A refusal, likewise."""
    return _encode({"ok": False, "error": {"code": code, "reason": reason, "message": message, "details": []}})
