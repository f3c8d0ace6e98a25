"""What the page asks: lists and numbers out of the view in memory, single objects and decisions from the API."""

import asyncio
from typing import Any

import yaml
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.errors import BadRequest, GardenbusError, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.dashboard.decide.choosing import ShootQuery, chosen, page_of, query_from
from gardenbus.dashboard.decide.redacting import redacted
from gardenbus.dashboard.decide.relating import Related, related_to
from gardenbus.dashboard.decide.rows import ShootRow
from gardenbus.dashboard.reconcilers.asking import Api
from gardenbus.dashboard.reconcilers.view import View, milliseconds
from gardenbus.dashboard.web.answers import answer
from gardenbus.dashboard.web.paths import key_in

MOST_EVENTS = 500
MOST_FOUND = 40
MOST_WAITING = 1_000
MOST_RELATED = 200


class Reading:
    """Handlers of everything that changes nothing."""

    def __init__(self, *, view: View, api: Api, clock: Clock, prefix: str, token: str | None) -> None:
        self._view = view
        self._api = api
        self._clock = clock
        self._prefix = prefix
        self._token = token
        self._sorted: tuple[int, ShootQuery, list[ShootRow]] | None = None

    async def session(self, _: Request) -> Response:
        """What the page may do. A foreign page cannot read this, so it never learns the token."""
        return answer({"allowWrites": self._token is not None, "token": self._token, "prefix": self._prefix})

    async def landscape(self, _: Request) -> Response:
        """The landscape in numbers."""
        return answer({"summary": self._view.summary(), "now": milliseconds(self._clock.now())})

    async def seeds(self, _: Request) -> Response:
        """All seeds."""
        rows = sorted(self._view.seeds.values(), key=lambda row: (row.provider, row.region, row.name))
        return answer({"items": [self._view.shown_seed(row) for row in rows], "now": milliseconds(self._clock.now())})

    async def shoots(self, request: Request) -> Response:
        """A part of the shoots, filtered and sorted."""
        query = query_from(dict(request.query_params))
        page = page_of(self._chosen(query), query)
        return answer({"items": page.rows, "total": page.total, "offset": query.offset})

    async def places(self, _: Request) -> Response:
        """What shoots can be filtered by: namespaces, providers with regions, and seeds."""
        regions: dict[str, set[str]] = {}
        for row in (*self._view.shoots.values(), *self._view.seeds.values()):
            regions.setdefault(row.provider, set()).add(row.region)
        return answer(
            {
                "namespaces": sorted({key.namespace for key in self._view.shoots}),
                "providers": {provider: sorted(found) for provider, found in sorted(regions.items())},
                "seeds": sorted(row.name for row in self._view.seeds.values()),
            }
        )

    async def growth(self, _: Request) -> Response:
        """The sets of seeds and their autoscalers."""
        return answer(
            {
                "sets": sorted(self._view.sets.values(), key=lambda row: row.name),
                "autoscalers": sorted(self._view.autoscalers.values(), key=lambda row: row.name),
            }
        )

    async def history(self, request: Request) -> Response:
        """How many seeds an autoscaler wanted and had. Raises NotFound."""
        key = ObjectKey("seedautoscaler", request.path_params["namespace"], request.path_params["name"])
        row = self._view.autoscalers.get(key)
        if row is None:
            raise NotFound(f"{key} is not there")
        return answer({"autoscaler": row, "samples": self._view.histories.get(key, []), "now": self._now()})

    async def waiting(self, _: Request) -> Response:
        """The shoots that wait for a seed, the longest waiting first."""
        try:
            result = await self._api.ask("waiting")
        except GardenbusError:
            result = None
        if isinstance(result, dict) and isinstance(result.get("items"), list):  # pyright: ignore[reportUnknownMemberType]
            return answer(result)
        rows = sorted((row for row in self._view.shoots.values() if row.refused), key=lambda row: row.created)
        items = [_waiting_item(row) for row in rows[:MOST_WAITING]]
        return answer({"items": items, "total": len(rows)})

    async def events(self, request: Request) -> Response:
        """The newest Events, of a kind, namespace, name or type."""
        wanted = {name: value for name, value in request.query_params.items() if value}
        if unknown := sorted(wanted.keys() - {"kind", "namespace", "name", "type"}):
            raise BadRequest(f"{unknown[0]}: no such parameter; there are kind, namespace, name, type")
        found: list[Document] = []
        for event in reversed(self._view.events.values()):
            if all(event[name] == value for name, value in wanted.items()):
                found.append(event)
                if len(found) >= MOST_EVENTS:
                    break
        return answer({"items": found})

    async def search(self, request: Request) -> Response:
        """The objects whose names hold all words, best first: those that begin with the first word."""
        words = request.query_params.get("q", "").lower().split()
        found: list[tuple[int, str, ObjectKey]] = []
        for key in self._view.keys() if words else ():
            name = f"{key.namespace}/{key.name}".lower()
            if all(word in name or word in key.kind for word in words):
                found.append((_rank(key, words[0]), name, key))
        found.sort()
        return answer({"items": [_found(key) for _, _, key in found[:MOST_FOUND]], "total": len(found)})

    async def one(self, request: Request) -> Response:
        """An object's page: its manifest (credentials hidden), the objects around it, and its Events."""
        key = key_in(request)
        document, events = await asyncio.gather(self._api.get(key), self._api.events_of(key))
        shown = redacted(document)
        related = [*related_to(document), *self._around(key)]
        return answer(
            {
                "object": shown,
                "yaml": _yaml(shown),
                "related": [each._asdict() | self._standing(each) for each in dict.fromkeys(related)][:MOST_RELATED],
                "events": events,
            }
        )

    async def explain(self, request: Request) -> Response:
        """The decision on a shoot: the funnel, the ranking, and what stands in its way."""
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        return answer(await self._api.ask(f"explain.shoot.{namespace}.{name}"))

    async def explain_seed(self, request: Request) -> Response:
        """Whether a seed is usable, by rule, and which waiting shoots it could take."""
        return answer(await self._api.ask(f"explain-seed.{request.path_params['name']}"))

    def _chosen(self, query: ShootQuery) -> list[ShootRow]:
        whole = ShootQuery(**{name: getattr(query, name) for name in _SORTED_BY})
        known = self._sorted
        if known is not None and known[0] == self._view.shoots_changed and known[1] == whole:
            return known[2]
        rows = chosen(self._view.shoots.values(), whole)
        self._sorted = (self._view.shoots_changed, whole, rows)
        return rows

    def _around(self, key: ObjectKey) -> list[Related]:
        """What the view knows of other objects that name this one."""
        view = self._view
        match key.kind:
            case "managedseedset":
                scalers = [each for each, row in view.autoscalers.items() if row.target == key.name]
                return [Related("scaled by", *each) for each in scalers if each.namespace == key.namespace]
            case "shoot":
                hosts = ObjectKey("managedseed", key.namespace, key.name)
                return [Related("is made a seed by", *hosts)] if hosts in view.others else []
            case "membercluster":
                return [Related("carries", *each) for each in view.fleet.placements_on(key.name)]
            case _:
                namesake = ObjectKey("managedseed", "garden", key.name)
                return [Related("made by", *namesake)] if key.kind == "seed" and namesake in view.others else []

    def _standing(self, related: Related) -> Document:
        """Whether an object is known here."""
        return {"known": self._view.row(ObjectKey(related.kind, related.namespace, related.name)) is not None}

    def _now(self) -> int:
        return milliseconds(self._clock.now())


_SORTED_BY = ("search", "namespace", "seed", "provider", "region", "state", "sort")


def _rank(key: ObjectKey, word: str) -> int:
    exact = 0 if key.name == word else 1 if key.name.startswith(word) else 2
    return exact * 2 + (0 if key.kind in ("shoot", "seed", "managedseedset", "seedautoscaler") else 1)


def _found(key: ObjectKey) -> Document:
    return {"kind": key.kind, "namespace": key.namespace, "name": key.name}


def _waiting_item(row: ShootRow) -> Document:
    return {
        "namespace": row.namespace,
        "name": row.name,
        "schedulerName": row.scheduler,
        "message": row.description,
        "since": row.created,
        "nextAttempt": None,
    }


def _yaml(document: Document) -> str:
    """In kubectl's order: what it is, what it is called, what is wanted, how it stands."""
    first = ("apiVersion", "kind", "metadata", "spec", "data", "status")
    ordered: dict[str, Any] = {name: document[name] for name in first if name in document}
    ordered |= {name: value for name, value in document.items() if name not in ordered}
    if metadata := section(ordered, "metadata"):
        order = ("name", "namespace", "labels", "annotations")
        known = {name: metadata[name] for name in order if name in metadata}
        ordered["metadata"] = known | {name: value for name, value in metadata.items() if name not in known}
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(ordered, Dumper=dumper, sort_keys=False, allow_unicode=True, width=110)
