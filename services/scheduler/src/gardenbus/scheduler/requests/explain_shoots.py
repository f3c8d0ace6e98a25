"""Explains a shoot's scheduling: every seed with its rank, or the filter that rejects it."""

from typing import Any

import msgspec

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.scheduling_order import band_of
from gardenbus.common.api.garden.scheduling_requirements import resolved_of
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey, Subjects
from gardenbus.common.api.responses import failure, success
from gardenbus.common.errors import GardenbusError, NotFound
from gardenbus.common.ports.bus import Bus, Request
from gardenbus.common.ports.recovery import Recovery
from gardenbus.common.ports.store import BindRecord, Store
from gardenbus.scheduler.domain.explain.decision_record import decode_record
from gardenbus.scheduler.domain.explain.explanation import explain
from gardenbus.scheduler.domain.explain.suggestions import suggestions_for
from gardenbus.scheduler.domain.left_out_seeds import (
    CIRCULAR,
    SILENT,
    LeftOut,
    left_out_by,
    left_out_rejections,
    left_out_steps,
    with_left_out,
)
from gardenbus.scheduler.domain.recovery_bars import recovering, runs_elsewhere
from gardenbus.scheduler.watch.hosting import read_hosting
from gardenbus.scheduler.watch.plugins import Plugins
from gardenbus.scheduling.cache import SchedulingCache
from gardenbus.scheduling.descheduling.distant_shoots import NearerSeeds
from gardenbus.scheduling.equivalence_classes import request_of, skip_reason
from gardenbus.scheduling.group_index import GroupIndex
from gardenbus.scheduling.results import Assignment, Explanation, RankedSeed, Unschedulable
from gardenbus.scheduling.score_table import ScoreTable
from gardenbus.scheduling.snapshot import Snapshot

_encode = msgspec.json.Encoder().encode


class ShootExplainHandler:
    """Handles requests on `Subjects.explain_of`; the response has the form of all responses of the API."""

    def __init__(
        self,
        *,
        store: Store,
        bus: Bus,
        subjects: Subjects,
        cache: SchedulingCache,
        scheduler_name: str,
        plugins: Plugins | None = None,
    ) -> None:
        self._scheduler_name = scheduler_name
        self._store = store
        self._bus = bus
        self._subjects = subjects
        self._cache = cache
        self._plugins = plugins

    async def __call__(self, request: Request) -> bytes:
        """Explain one shoot as if it were scheduled now."""
        namespace, _, name = request.subject.split(".explain.", 1)[-1].partition(".")
        key = ObjectKey("shoot", namespace, name)
        try:
            stored = await self._store.get(key)
            if stored is None:
                return failure(NotFound(f"{key} not found"))
            left_out = left_out_by(CIRCULAR, await self._hosted(key))
            is_placed = bool(stored.parts.seed_name)
            bind_record = await self._store.bind_record(key) if is_placed else None
            next_attempt = None if is_placed else await self._next_attempt(stored)
            recovery = None if is_placed else await self._store.recovery()
            silent = left_out_by(SILENT, recovery.silent if recovery is not None else ())
            bar = None if is_placed else await self._bar(key, recovery)
            document = stored.document()
            rules = resolved_of(document).group_rules
            groups = GroupIndex()
            if rules:
                counts = await self._store.group_counts(namespace, rules.read)
                groups = GroupIndex({(namespace, group): each for group, each in counts.items()})
            explained = self._explained(document, {**silent, **left_out}, bar, groups)
        except GardenbusError as error:
            return failure(error)
        return success({**explained, "nextAttempt": next_attempt, "recorded": _reported(bind_record)})

    async def _bar(self, key: ObjectKey, recovery: Recovery | None) -> Unschedulable | None:
        """The reason for which the store lets the shoot onto no seed at all."""
        runs = next((each.seed for each in await self._store.unknown_objects() if each.key == key), "")
        if runs:
            return runs_elsewhere(runs)
        return recovering(recovery) if recovery is not None and await self._store.is_recovering(key) else None

    def _explained(
        self, document: Document, left_out: LeftOut, bar: Unschedulable | None, groups: GroupIndex
    ) -> dict[str, Any]:
        shoot = Shoot.from_document(document)
        snapshot = msgspec.structs.replace(self._cache.snapshot(self._scheduler_name), groups=groups)
        left_out = {seed: rule for seed, rule in left_out.items() if seed in snapshot.landscape.seeds_by_name}
        left = Snapshot(snapshot.landscape.without(left_out), snapshot.usage, groups) if left_out else snapshot
        landscape = snapshot.landscape
        request = request_of(shoot, document, landscape.filters, reads_purpose=landscape.reads_purpose)
        for seed in {shoot.spec.seed_name, shoot.status.seed_name} & snapshot.usage.keys():
            snapshot.usage.move(seed, "", request.requests)  # it does not stand in its own way
        for seed in {shoot.spec.seed_name, shoot.status.seed_name} - {""}:
            groups.take_away(request.constraints.namespace, request.rules, seed)
        explanation = explain(request, left)
        outcome = bar or with_left_out(left_out, explanation.outcome)
        rejections = sorted((*explanation.rejections, *left_out_rejections(left_out)), key=lambda each: each.seed)
        is_unschedulable = not isinstance(outcome, Assignment)
        return {
            "placed": shoot.spec.seed_name or None,
            "skipped": skip_reason(shoot, self._scheduler_name) or None,
            "wouldChoose": None if is_unschedulable else outcome.seed,
            "message": outcome.message if is_unschedulable else None,
            "strategy": explanation.strategy,
            "seeds": len(snapshot.landscape.seeds),
            "funnel": (*left_out_steps(left_out, len(left.landscape.seeds)), *explanation.funnel),
            "ranking": [_ranked(each) for each in explanation.ranking],
            "rejections": rejections,
            "wakesOn": suggestions_for(request, left) if is_unschedulable else (),
            "nearer": NearerSeeds(left).of(shoot, document),
            **({} if self._plugins is None else {"plugins": self._plugins.states(request.constraints)}),
            **_by_scores(explanation, left.landscape.scores),
        }

    async def _next_attempt(self, stored: StoredObject) -> str | None:
        """Due time of a waiting shoot's timer (RFC 3339)."""
        band = band_of(resolved_of(stored.document()).priority)
        later = self._subjects.later(self._subjects.scheduling(self._scheduler_name, stored.key, band))
        timer = await self._bus.last(self._subjects.stream("QUEUES"), later)
        how, _, due = (timer.headers.get("Nats-Schedule", "") if timer is not None else "").partition(" ")
        return due if how == "@at" else None

    async def _hosted(self, key: ObjectKey) -> frozenset[str]:
        """The seeds that a shoot hosts, where it can never go."""
        if key.namespace != GARDEN_NAMESPACE:
            return frozenset()
        return (await read_hosting(self._store)).get(key, frozenset())


def _by_scores(explanation: Explanation, table: ScoreTable) -> dict[str, Any]:
    """The scores of the profile in its order, where they choose."""
    if not table:
        return {}
    scores = [
        {"name": each.name, "weight": each.weight, "requested": each.name not in explanation.unrequested}
        for each in table.plugins
    ]
    return {"scores": scores}


def _ranked(ranked: RankedSeed) -> dict[str, Any]:
    """One seed of the ranking, with the member names of the response's first form and of its present one."""
    return {
        "seed": ranked.seed,
        "place": ranked.place,
        "rank": ranked.place,
        "distance": ranked.distance,
        "usage": ranked.usage,
        "used": ranked.usage,
        "capacity": ranked.capacity,
        "allocatable": ranked.capacity,
        **({"sum": ranked.total, "scores": [each.score for each in ranked.scores]} if ranked.scores else {}),
    }


def _reported(bind_record: BindRecord | None) -> object:
    return decode_record(bind_record.decision_record, bind_record.at) if bind_record is not None else None
