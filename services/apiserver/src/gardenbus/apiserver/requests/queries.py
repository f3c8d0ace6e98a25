"""Queries: one object, lists, Events and Leases (which live on the bus), and explanations."""

from typing import Any, Final

import msgspec

from gardenbus.apiserver.call import Call
from gardenbus.apiserver.domain.kind_actors import actors_of
from gardenbus.apiserver.domain.query_bodies import check_limit
from gardenbus.apiserver.domain.request_subjects import ListTarget
from gardenbus.apiserver.domain.responses import RequestResponse, success_response
from gardenbus.apiserver.registry.bus_lists import BusLists, as_object
from gardenbus.apiserver.registry.indexed_lists import (
    ENTRY,
    INSTALLATION,
    SHOOT,
    IndexedList,
    entries_in_bucket,
    installations_on_seed,
    objects_named,
    shoots_on_seed,
)
from gardenbus.apiserver.registry.loop_turn import LoopTurn
from gardenbus.apiserver.registry.stored_kinds import unregistered_kinds
from gardenbus.apiserver.registry.stored_names import StoredNames
from gardenbus.apiserver.requests.shoot_census import shoot_census
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import section
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.keys import LEASE_NAMESPACE, ObjectKey, Subjects
from gardenbus.common.api.kinds import KINDS, understood_kinds
from gardenbus.common.api.list_selectors import required_field
from gardenbus.common.api.request_bodies import ListRequest, NamesRequest
from gardenbus.common.errors import BadRequest, GardenbusError, NotFound, Unavailable, Unsupported
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.store import Page, Store

DEFAULT_LIMIT = 500
"""Limit of a list that states none; the rest comes with `continue`."""

RESPONSE_LIMIT = 6 * 1024 * 1024
"""Bytes of manifests in one response; the bus accepts messages of 8 MB."""

SCAN_LIMIT = 5_000
"""Objects that one request filters by a selector before it responds with `continue`."""

SCHEDULER_SECONDS = 3.0
"""Timeout of a scheduler that explains a shoot."""

RANKED = 50
"""Seeds that an explanation ranks at the most; `considered` has them all."""

_BUS_TOKEN: Final = "bus:"  # noqa: S105 - where a list goes on
"""Beginning of a continue token within the Leases of the bus; the store's tokens are Base64."""

_decode = json_decoder(dict[str, Any])


class ObjectReader:
    """Handles queries. Manifests are passed on as they are stored, unparsed, unless a selector must read them."""

    def __init__(self, store: Store, bus: Bus, subjects: Subjects) -> None:
        self._store = store
        self._bus = bus
        self._subjects = subjects
        self._names = StoredNames(store)
        self._on_bus = BusLists(bus, subjects, most_bytes=RESPONSE_LIMIT)

    async def on_get(self, call: Call) -> Any:
        """The manifest of `<kind>.<namespace>.<name>`. Raises NotFound, BadRequest, Unsupported."""
        key = await self._names.key(call.tail)
        if key.kind == "event":
            raise Unsupported("Events are not requested by name: list.event[.<namespace>]")
        if key.kind == "lease" and key.namespace == LEASE_NAMESPACE:
            found = await self._bus.last(self._subjects.stream("LEASES"), self._subjects.lease(key.name))
            if found is None or found.marker is not None:
                raise NotFound(f"{key} not found: no heartbeat has arrived lately")
            return as_object(found.body)
        stored = await self._store.get(key)
        if stored is None:
            raise NotFound(f"{key} not found")
        return msgspec.Raw(stored.encoded())

    async def on_list(self, call: Call) -> RequestResponse:
        """The list of `<kind>[.<namespace>]`: `{"items", "resourceVersion", "continue"?}`.

        A list may come in parts (with `continue`) before its limit: where the response would be too large for the bus,
        or where a selector has filtered SCAN_LIMIT objects. A first part shorter than the requested limit warns.
        """
        query, target = call.read(ListRequest), await self._names.list_target(call.tail)
        check_limit(query.limit)
        if target.kind == "event":
            return await self._events(target.namespace, query)
        is_on_bus = target.kind == "lease" and target.namespace in (None, LEASE_NAMESPACE)
        found = await (self._leases(target, query) if is_on_bus else self._stored(target, query))
        return success_response(found, _warnings(query, len(found["items"]), is_cut="continue" in found))

    async def on_names(self, call: Call) -> Any:
        """The names of `<kind>[.<namespace>]` that begin with a prefix: `{"names"}`, each once, from an index.

        When there are more than the limit, or DEFAULT_LIMIT, the last is among them, so that what those in the response
        have in common is what all have in common. Raises Unsupported for kinds that are on the bus.
        """
        query, target = call.read(NamesRequest), await self._names.list_target(call.tail)
        check_limit(query.limit)
        if target.kind in ("event", "lease"):
            raise Unsupported(f"names.{call.tail}: these are not all in the store: list.{call.tail}")
        limit = min(query.limit, DEFAULT_LIMIT)
        return {"names": await self._store.names_with(target.kind, query.prefix, target.namespace, limit=limit)}

    async def on_kinds(self, _: Call) -> Any:
        """The kinds that are served, which of them are understood, and those that are only stored."""
        understood = {spec.singular for spec in understood_kinds()}
        return [
            {
                "apiVersion": spec.api_version,
                "kind": spec.kind,
                "singular": spec.singular,
                "plural": spec.plural,
                "shortNames": spec.short_names,
                "namespaced": spec.namespaced,
                "understood": spec.singular in understood,
                "actsOn": actors_of(spec) if spec.singular in KINDS else "",
            }
            for spec in (*KINDS.values(), *await unregistered_kinds(self._store))
        ]

    async def on_census(self, call: Call) -> Any:
        """Counts of objects, pending and unschedulable shoots, and unannounced changes; `shoot`: of shoots by state."""
        match call.tail:
            case "":
                return dict(await self._store.census())
            case "shoot":
                return await shoot_census(self._store)
            case _:
                raise Unsupported(f"census.{call.tail}: there are census and census.shoot")

    async def on_lost(self, _: Call) -> Any:
        """Losses of streams, or of a store, that went back."""
        return {"items": await self._store.stream_losses()}

    async def on_usage(self, _: Call) -> Any:
        """Shoots that count on each seed; a moving one counts on both. Seeds without shoots are left out."""
        return {"seeds": dict((await self._store.usage()).seeds)}

    async def on_explain(self, call: Call) -> Any:
        """Assignment of a shoot or, while it is unschedulable, the stored reason and its scheduler's explanation.

        `considered` is the scheduler's response. It is null when there is none, and `unanswered` has the reason. Beside
        it are the best of its ranking, the next attempt and the cluster events that may unblock an unschedulable shoot,
        and the decision record of a placed one.
        """
        key = await self._names.explained_key(call.tail)
        if key.kind == "seed":
            return await self._explained_seed(key.name)
        stored = await self._store.get(key)
        if stored is None:
            raise NotFound(f"{key} not found")
        pending = _decode(b"{" + stored.pending + b"}")
        scheduler_name = str(section(stored.document(), "spec").get("schedulerName") or DEFAULT_SCHEDULER)
        considered, reason = await self._from_scheduler(self._subjects.explain(scheduler_name, key), scheduler_name)
        found: dict[str, Any] = considered or {}
        return {
            "shoot": f"{key.namespace}/{key.name}",
            "seed": stored.parts.seed_name or None,
            "schedulerName": scheduler_name,
            "generation": stored.generation,
            "message": pending.get("description"),
            "since": pending.get("startTime") or pending.get("lastUpdateTime"),
            "messageTime": pending.get("lastUpdateTime"),
            "ranking": [
                {name: ranked.get(name) for name in ("seed", "distance", "used", "allocatable", "rank")}
                for ranked in (found.get("ranking") or ())[:RANKED]
            ],
            "nextAttempt": found.get("nextAttempt"),
            "wakesOn": found.get("wakesOn") or [],
            "recorded": found.get("recorded"),
            "considered": considered,
            "unanswered": reason,
        }

    async def on_explain_seed(self, call: Call) -> Any:
        """Feasibility of a seed, rule by rule, and the unschedulable shoots that would fit, from the scheduler.

        Raises NotFound, and Unavailable when no scheduler responds.
        """
        return await self._explained_seed(call.tail)

    async def on_explain_drain(self, call: Call) -> Any:
        """Plan of a seed's drain: the shoots that would move and where, and those that would stay, from the scheduler.

        Raises NotFound, and Unavailable when no scheduler responds.
        """
        return await self._of_seed(call.tail, self._subjects.explain_drain(DEFAULT_SCHEDULER, call.tail))

    async def _explained_seed(self, name: str) -> Any:
        return await self._of_seed(name, self._subjects.explain_seed(DEFAULT_SCHEDULER, name))

    async def _of_seed(self, name: str, subject: str) -> Any:
        if not name or await self._store.get(ObjectKey("seed", "", name)) is None:
            raise NotFound(f"seed {name} not found")
        explained, reason = await self._from_scheduler(subject, DEFAULT_SCHEDULER)
        if explained is None:
            raise Unavailable(str(reason))
        return explained

    async def _from_scheduler(self, subject: str, scheduler_name: str) -> tuple[Any, str | None]:
        """Response of a scheduler, or the reason why there is none."""
        try:
            response = _decode(await self._bus.request(subject, b"", timeout_seconds=SCHEDULER_SECONDS))
        except Unavailable:
            return None, f"no scheduler {scheduler_name} responds on {subject}"
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None, f"the response on {subject} is no JSON object"
        if response.get("ok"):
            return response.get("result"), None
        return None, str(section(response, "error").get("message") or "the scheduler gives no reason")

    # ------------------------------------------------------------------------------------------ lists

    async def _stored(self, target: ListTarget, query: ListRequest) -> dict[str, Any]:
        matches = query.matches
        indexed = self._indexed(target, query)
        selected: list[msgspec.Raw] = []
        token, size, seen = query.continue_token, 0, 0
        first: Page | None = None
        turn = LoopTurn()
        while True:
            page = await self._page(target, indexed, query.limit - len(selected), token, RESPONSE_LIMIT - size)
            first = first or page
            for stored in page.objects:
                await turn.let_others_in()
                if matches is None or matches(stored.document()):
                    selected.append(msgspec.Raw(stored.encoded()))
                    size += len(selected[-1])
            seen += len(page.objects)
            token = page.continue_token
            if token is None or len(selected) >= query.limit or size > RESPONSE_LIMIT / 2 or seen >= SCAN_LIMIT:
                break
        return _list(selected, str(first.version), token)

    def _indexed(self, target: ListTarget, query: ListRequest) -> IndexedList | None:
        """The index that has all that can match, and little else; None when all of the kind must be looked through."""
        if query.selected_name:
            return objects_named(self._store, target.kind, query.selected_name)
        if target.kind == ENTRY and query.bucket:
            return entries_in_bucket(self._store, query.bucket)
        on_seed = {SHOOT: shoots_on_seed, INSTALLATION: installations_on_seed}.get(target.kind)
        return on_seed(self._store, query.seed) if on_seed is not None and query.seed else None

    async def _page(
        self, target: ListTarget, indexed: IndexedList | None, limit: int, token: str | None, room: int
    ) -> Page:
        """A page that fits a response, of all objects or of those that an index lists."""
        while True:
            try:
                page = (
                    await self._store.list_page(
                        target.kind, target.namespace, limit=limit, continue_token=token or None
                    )
                    if indexed is None
                    else await indexed.page(target.namespace, limit=limit, continue_token=token)
                )
            except GardenbusError:
                raise
            except (ValueError, msgspec.DecodeError) as error:
                raise BadRequest("continue: not a token of a list's response") from error
            if limit <= 1 or sum(len(stored.encoded()) for stored in page.objects) <= room:
                return page
            limit = max(1, min(limit, len(page.objects)) // 2)

    async def _events(self, namespace: str | None, query: ListRequest) -> RequestResponse:
        """Events, the newest count of each, in the order of their last occurrence."""
        if query.continue_token:
            raise BadRequest("continue: a list of Events has no continuation: request a higher limit")
        kind = required_field(query.field_selector, "involvedObject", "kind").lower()
        name = required_field(query.field_selector, "involvedObject", "name")
        page = await self._on_bus.events(namespace, query.matches, query.limit, kind=kind, name=name)
        total = "" if page.total is None else f" of {page.total}"
        warning = f"these are the newest {len(page.items)}{total} Events: a higher limit gives more"
        return success_response(_list(page.items, "", None), (warning,) if page.total != len(page.items) else ())

    async def _leases(self, target: ListTarget, query: ListRequest) -> dict[str, Any]:
        """Leases of the store and then those of gardenlets, which are on the bus; in one namespace only the latter."""
        token = query.continue_token or ""
        found = _list([], "", None)
        if target.namespace is None and not token.startswith(_BUS_TOKEN):
            found = await self._stored(target, query)
            if "continue" in found:
                return found
        room = query.limit - len(found["items"])
        page = await self._on_bus.leases(token.removeprefix(_BUS_TOKEN), query.matches, room)
        next_token = None if page.last is None else f"{_BUS_TOKEN}{page.last}"
        return _list([*found["items"], *page.items], found["resourceVersion"], next_token)


def _warnings(query: ListRequest, listed: int, *, is_cut: bool) -> tuple[str, ...]:
    """A warning for whoever takes the first part of a list for the whole; none for whoever pages through it."""
    is_wanted = query.limit != DEFAULT_LIMIT and listed == query.limit
    if not is_cut or is_wanted or query.continue_token:
        return ()
    return (f"the list ends after {listed} objects: request the rest with the `continue` of this response",)


def _list(items: list[msgspec.Raw], version: str, token: str | None) -> dict[str, Any]:
    result: dict[str, Any] = {"items": items, "resourceVersion": version}
    if token is not None:
        result["continue"] = token
    return result
