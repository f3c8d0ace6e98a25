"""Read-only request handlers: lists and numbers from the cache, single objects and decisions from the API."""

import asyncio
import heapq
from dataclasses import dataclass
from typing import Any

import yaml
from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.readable import Readable
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.kinds import SHOWN
from gardenbus.common.api.redaction import redacted
from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.domain.decisions import outline_of, rejections_by
from gardenbus.dashboard.domain.moves import moves_of
from gardenbus.dashboard.domain.related_objects import Related, related_to
from gardenbus.dashboard.domain.shoot_query import query_from
from gardenbus.dashboard.watch.landscape import DashboardCache, milliseconds
from gardenbus.dashboard.web.acting import acting, session_of
from gardenbus.dashboard.web.paging import page_query
from gardenbus.dashboard.web.paths import key_in
from gardenbus.dashboard.web.responses import json_response

MOST_EVENTS = 500
MOST_FOUND = 40
MOST_RELATED = 200


@dataclass(eq=False, kw_only=True)
class ReadHandlers:
    """Read-only handlers."""

    cache: DashboardCache
    api: GardenApiClient
    clock: Clock
    prefix: str
    allows_writes: bool
    readable: Readable

    async def session(self, request: Request) -> Response:
        """Respond with the page's permissions. A foreign page cannot read this, so it never learns the token."""
        session = session_of(request)
        return json_response(
            {
                "allowWrites": self.allows_writes,
                "token": session.page_token,
                "prefix": self.prefix,
                "user": session.user,
                "isOperator": self.readable.is_operators,
            }
        )

    async def landscape(self, _: Request) -> Response:
        """Respond with the landscape in numbers."""
        return json_response({"summary": self.cache.summary(), "now": milliseconds(self.clock.now())})

    async def seeds(self, _: Request) -> Response:
        """Respond with all seeds."""
        return json_response({"items": self.cache.shown_seeds(), "now": milliseconds(self.clock.now())})

    async def shoots(self, request: Request) -> Response:
        """Respond with a page of the shoots, filtered and sorted."""
        query = query_from(dict(request.query_params))
        page = self.cache.shoots_page(query)
        return json_response({"items": page.rows, "total": page.total, "offset": query.offset})

    async def places(self, _: Request) -> Response:
        """Respond with filters for shoots: namespaces, providers with regions, and seeds."""
        regions: dict[str, set[str]] = {}
        of_seeds = ((row.provider, row.region) for row in self.cache.seeds.values())
        for provider, region in (*self.cache.lists.regions, *of_seeds):
            regions.setdefault(provider, set()).add(region)
        return json_response(
            {
                "namespaces": sorted(self.cache.lists.namespaces),
                "providers": {provider: sorted(found) for provider, found in sorted(regions.items())},
                "seeds": sorted(row.name for row in self.cache.seeds.values()),
            }
        )

    async def growth(self, _: Request) -> Response:
        """Respond with the sets of seeds and their autoscalers."""
        return json_response(
            {
                "sets": sorted(self.cache.sets.values(), key=lambda row: row.name),
                "autoscalers": sorted(self.cache.autoscalers.values(), key=lambda row: row.name),
            }
        )

    async def history(self, request: Request) -> Response:
        """Respond with the history of an autoscaler's sizes. Raises NotFound."""
        key = ObjectKey("seedautoscaler", request.path_params["namespace"], request.path_params["name"])
        row = self.cache.autoscalers.get(key)
        if row is None:
            raise NotFound(f"{key} not found")
        return json_response({"autoscaler": row, "samples": self.cache.histories.get(key, []), "now": self._now()})

    async def events(self, request: Request) -> Response:
        """Respond with the newest Events, of a kind, namespace, name or type."""
        wanted = {name: value for name, value in request.query_params.items() if value}
        if unknown := sorted(wanted.keys() - {"kind", "namespace", "name", "type"}):
            raise BadRequest(f"{unknown[0]}: no such parameter; there are kind, namespace, name, type")
        found: list[Document] = []
        for event in reversed(self.cache.events.values()):
            if all(event[name] == value for name, value in wanted.items()):
                found.append(event)
                if len(found) >= MOST_EVENTS:
                    break
        return json_response({"items": found})

    async def search(self, request: Request) -> Response:
        """Respond with objects whose names contain all words; those that begin with the first word come first."""
        words = request.query_params.get("q", "").lower().split()
        found = self.cache.named(words, MOST_FOUND) if words else []
        first = heapq.nsmallest(MOST_FOUND, found, key=lambda key: (_rank(key, words[0]), key.namespace, key.name))
        return json_response({"items": [_found(key) for key in first]})

    async def get_object(self, request: Request) -> Response:
        """Respond with an object: manifest (credentials hidden), related objects, and Events."""
        key = key_in(request)
        api = acting(self.api, request)
        document, events = await asyncio.gather(api.get(key), self._events_of(key))
        shown = redacted(document)
        related = [*related_to(document), *self._referrers(key)]
        return json_response(
            {
                "object": shown,
                "yaml": _yaml(shown),
                "related": [each._asdict() | self._with_presence(each) for each in dict.fromkeys(related)][
                    :MOST_RELATED
                ],
                "events": events,
                "moves": moves_of(events) if key.kind == "shoot" else [],
            }
        )

    async def _events_of(self, key: ObjectKey) -> list[Document]:
        return await self.api.events_of(key) if self.readable.allows("event", key.namespace, "") else []

    async def fill(self, request: Request) -> Response:
        """Respond with the history of a seed's number of shoots. Raises NotFound."""
        name = request.path_params["name"]
        row = self.cache.seeds.get(ObjectKey("seed", "", name))
        if row is None:
            raise NotFound(f"seed {name} not found")
        history = self.cache.fills.get(name)
        samples = [] if history is None else [each._asdict() for each in history.samples]
        return json_response({"samples": samples, "capacity": row.capacity, "now": self._now()})

    async def explain(self, request: Request) -> Response:
        """Respond with the decision on a shoot: the funnel, the ranking, and in numbers the reasons against seeds."""
        return json_response(outline_of(await self._explanation(request)))

    async def rejections(self, request: Request) -> Response:
        """Respond with a page of the seeds that one `rule` rejects for a shoot."""
        query = page_query(request, ("rule",))
        found = rejections_by(await self._explanation(request), request.query_params.get("rule", ""))
        return json_response({"items": found[query.part], "total": len(found), "offset": query.offset})

    async def _explanation(self, request: Request) -> Document:
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        return await acting(self.api, request).request(f"explain.shoot.{namespace}.{name}")

    async def explain_seed(self, request: Request) -> Response:
        """Respond with a seed's usability, by filter, and the waiting shoots that fit on it."""
        api = acting(self.api, request)
        return json_response(await api.request(f"explain-seed.{request.path_params['name']}"))

    def _referrers(self, key: ObjectKey) -> list[Related]:
        """Return cached objects that refer to this one."""
        cache = self.cache
        match key.kind:
            case "managedseedset":
                scalers = [each for each, row in cache.autoscalers.items() if row.target == key.name]
                return [Related("scaled by", *each) for each in scalers if each.namespace == key.namespace]
            case "shoot":
                hosts = ObjectKey("managedseed", key.namespace, key.name)
                return [Related("is made a seed by", *hosts)] if hosts in cache.others else []
            case "membercluster":
                return [Related("carries", *each) for each in cache.fleet.placements_on(key.name)]
            case _:
                namesake = ObjectKey("managedseed", "garden", key.name)
                return [Related("made by", *namesake)] if key.kind == "seed" and namesake in cache.others else []

    def _with_presence(self, related: Related) -> Document:
        """Report whether an object is in the cache; one of a kind that is not followed counts as being there."""
        row = self.cache.row(ObjectKey(related.kind, related.namespace, related.name))
        return {"known": row is not None or related.kind not in SHOWN}

    def _now(self) -> int:
        return milliseconds(self.clock.now())


def _rank(key: ObjectKey, word: str) -> int:
    exact = 0 if key.name == word else 1 if key.name.startswith(word) else 2
    return exact * 2 + (0 if key.kind in ("shoot", "seed", "managedseedset", "seedautoscaler") else 1)


def _found(key: ObjectKey) -> Document:
    return {"kind": key.kind, "namespace": key.namespace, "name": key.name}


def _yaml(document: Document) -> str:
    """Format in kubectl's order: type, metadata, spec, status."""
    first = ("apiVersion", "kind", "metadata", "spec", "data", "status")
    ordered: dict[str, Any] = {name: document[name] for name in first if name in document}
    ordered |= {name: value for name, value in document.items() if name not in ordered}
    if metadata := section(ordered, "metadata"):
        order = ("name", "namespace", "labels", "annotations")
        present = {name: metadata[name] for name in order if name in metadata}
        ordered["metadata"] = present | {name: value for name, value in metadata.items() if name not in present}
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(ordered, Dumper=dumper, sort_keys=False, allow_unicode=True, width=110)
