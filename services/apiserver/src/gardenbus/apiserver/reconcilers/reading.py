"""Reads that people ask for: one object, lists, Events and Leases (which live on the bus), and what waits."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gardenbus.apiserver.reconcilers.selection import Chooses, selection
from gardenbus.apiserver.reconcilers.speaking import Wanted, key_in, list_in
from gardenbus.common.errors import BadRequest, GardenbusError, NotFound, Unavailable, Unsupported
from gardenbus.common.ports.bus import Bus, Delivered, ReplayDone
from gardenbus.common.ports.store import Page, Store
from gardenbus.common.resources.document import section
from gardenbus.common.resources.keys import CANARY_LEASE, CLUSTER_SCOPE, LEASE_NAMESPACE, ObjectKey, Subjects
from gardenbus.common.resources.kinds import KINDS, understood_kinds
from gardenbus.common.resources.shoots import DEFAULT_SCHEDULER

DEFAULT_LIMIT = 500
"""Objects of a list that asks for no limit; the rest comes with `continue`."""

ANSWER_LIMIT = 6 * 1024 * 1024
"""Bytes of manifests in one answer; the bus takes messages of 8 MB."""

SCAN_LIMIT = 5_000
"""Objects that one request looks through for a selector before it answers with `continue`."""

SCHEDULER_SECONDS = 3.0
"""How long a scheduler is waited for to explain a shoot."""

RANKED = 50
"""Seeds that an explanation ranks at the most; `considered` has them all."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Query(msgspec.Struct, frozen=True, rename="camel"):
    """The body of a list."""

    limit: int = DEFAULT_LIMIT
    continue_token: str | None = msgspec.field(default=None, name="continue")
    label_selector: str = ""
    field_selector: str = ""

    @classmethod
    def read(cls, body: bytes) -> "Query":
        """Read a list's body, which may be empty. Raises BadRequest with the field."""
        if not body.strip():
            return cls()
        try:
            query = msgspec.json.decode(body, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadRequest(f"a list's body is {{limit, continue, labelSelector, fieldSelector}}: {error}") from error
        if query.limit < 1:
            raise BadRequest("limit: must be at least 1")
        return query

    @property
    def chooses(self) -> Chooses | None:
        """Which objects are wanted; None for all."""
        return selection({"labelSelector": self.label_selector, "fieldSelector": self.field_selector})


class Reader:
    """Answers reads. Manifests are passed on as they are stored, unparsed, unless a selector must look into them."""

    def __init__(self, store: Store, bus: Bus, subjects: Subjects) -> None:
        self._store = store
        self._bus = bus
        self._subjects = subjects

    async def get(self, tail: str) -> Any:
        """The manifest of `<kind>.<namespace>.<name>`. Raises NotFound, BadRequest, Unsupported."""
        key = await self.key(tail)
        if key.kind == "event":
            raise Unsupported("Events have no names to be asked for by: list.event[.<namespace>]")
        if key.kind == "lease" and key.namespace == LEASE_NAMESPACE:
            found = await self._bus.last(self._subjects.stream("LEASES"), self._subjects.lease(key.name))
            if found is None or found.marker is not None:
                raise NotFound(f"{key} is not there: no heartbeat has arrived lately")
            return _raw(found.body)
        stored = await self._store.get(key)
        if stored is None:
            raise NotFound(f"{key} is not there")
        return msgspec.Raw(stored.encoded())

    async def key(self, tail: str) -> ObjectKey:
        """The key that a subject's tail names. Raises BadRequest, Unsupported."""
        try:
            return key_in(tail)
        except Unsupported:
            return key_in(tail, await self._stored_kinds())

    async def list_objects(self, tail: str, body: bytes) -> Any:
        """The list of `<kind>[.<namespace>]`: `{"items", "resourceVersion", "continue"?}`.

        A list may come in parts (with `continue`) before its limit: where the answer would be too large for the bus,
        or where a selector has looked through SCAN_LIMIT objects.
        """
        query = Query.read(body)
        try:
            wanted = list_in(tail)
        except Unsupported:
            wanted = list_in(tail, await self._stored_kinds())
        if wanted.kind == "event":
            return await self._events(wanted.namespace, query)
        if wanted.kind == "lease" and wanted.namespace == LEASE_NAMESPACE:
            return await self._from_bus("LEASES", self._subjects.lease(">"), query, all_of_subject=False)
        return await self._stored(wanted, query)

    def kinds(self) -> Any:
        """The kinds that are known, and which of them are understood."""
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
            }
            for spec in KINDS.values()
        ]

    async def census(self) -> Any:
        """Counts of objects, pending and waiting shoots, and unannounced changes."""
        return dict(await self._store.census())

    async def explain(self, tail: str) -> Any:
        """Where a shoot stands and, while it waits, why: what is stored of it, and what its scheduler says now.

        `considered` is the scheduler's answer. It is null when there is none, and `unanswered` says why. Beside it
        stand the best of its ranking, when a shoot that waits is tried next and what would wake it, and what was
        recorded when a placed one was bound.
        """
        namespace, _, name = tail.partition(".")
        is_short = name and "." not in name and namespace not in ("seed", "seeds")  # <namespace>.<name> of a shoot
        key = ObjectKey("shoot", namespace, name) if is_short else await self.key(tail)
        if key.kind == "seed":
            return await self.explain_seed(key.name)
        if key.kind != "shoot":
            raise Unsupported(f"explain.{tail}: shoots and seeds are explained")
        stored = await self._store.get(key)
        if stored is None:
            raise NotFound(f"{key} is not there")
        refusal = _decode(b"{" + stored.pending + b"}")
        scheduler_name = str(section(stored.document(), "spec").get("schedulerName") or DEFAULT_SCHEDULER)
        considered, unanswered = await self._from_scheduler(self._subjects.explain(scheduler_name, key), scheduler_name)
        found: dict[str, Any] = considered or {}
        return {
            "shoot": f"{key.namespace}/{key.name}",
            "seed": stored.parts.seed_name or None,
            "schedulerName": scheduler_name,
            "generation": stored.generation,
            "message": refusal.get("description"),
            "since": refusal.get("lastUpdateTime"),
            "ranking": [
                {name: ranked.get(name) for name in ("seed", "distance", "used", "allocatable", "rank")}
                for ranked in (found.get("ranking") or ())[:RANKED]
            ],
            "nextAttempt": found.get("nextAttempt"),
            "wakesOn": found.get("wakesOn") or [],
            "recorded": found.get("recorded"),
            "considered": considered,
            "unanswered": unanswered,
        }

    async def explain_seed(self, name: str) -> Any:
        """Whether a seed takes shoots, rule by rule, and who of those that wait could go there, says the scheduler.

        Raises NotFound, and Unavailable when no scheduler answers.
        """
        if not name or await self._store.get(ObjectKey("seed", "", name)) is None:
            raise NotFound(f"seed {name} is not there")
        subject = self._subjects.explain_seed(DEFAULT_SCHEDULER, name)
        explained, unanswered = await self._from_scheduler(subject, DEFAULT_SCHEDULER)
        if explained is None:
            raise Unavailable(str(unanswered))
        return explained

    async def _from_scheduler(self, subject: str, scheduler_name: str) -> tuple[Any, str | None]:
        """What a scheduler answers, or why it says nothing."""
        try:
            answer = _decode(await self._bus.request(subject, b"", timeout_seconds=SCHEDULER_SECONDS))
        except Unavailable:
            return None, f"no scheduler of the name {scheduler_name} answers on {subject}"
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None, f"what answers on {subject} sends no JSON object"
        if answer.get("ok"):
            return answer.get("result"), None
        return None, str(section(answer, "error").get("message") or "the scheduler gives no reason")

    # ------------------------------------------------------------------------------------------ lists

    async def _stored(self, wanted: Wanted, query: Query) -> Any:
        chooses = query.chooses
        chosen: list[msgspec.Raw] = []
        token, size, seen = query.continue_token, 0, 0
        first: Page | None = None
        while True:
            page = await self._page(wanted, query.limit - len(chosen), token, ANSWER_LIMIT - size)
            first = first or page
            for stored in page.objects:
                if chooses is None or chooses(stored.document()):
                    chosen.append(msgspec.Raw(stored.encoded()))
                    size += len(chosen[-1])
            seen += len(page.objects)
            token = page.continue_token
            if token is None or len(chosen) >= query.limit or size > ANSWER_LIMIT / 2 or seen >= SCAN_LIMIT:
                break
        return _list(chosen, str(first.version), token)

    async def _page(self, wanted: Wanted, limit: int, token: str | None, room: int) -> Page:
        """A page that fits an answer."""
        while True:
            try:
                page = await self._store.list_page(
                    wanted.kind, wanted.namespace, limit=limit, continue_token=token or None
                )
            except GardenbusError:
                raise
            except (ValueError, msgspec.DecodeError) as error:
                raise BadRequest("continue: not a token of a list's answer") from error
            if limit <= 1 or sum(len(stored.encoded()) for stored in page.objects) <= room:
                return page
            limit = max(1, min(limit, len(page.objects)) // 2)

    async def _events(self, namespace: str | None, query: Query) -> Any:
        """Events, the newest count of each, in the order of their last occurrence."""
        scope = "*" if namespace is None else namespace or CLUSTER_SCOPE
        return await self._from_bus("EVENTS", f"{self._subjects.prefix}.event.*.{scope}.>", query, all_of_subject=True)

    async def _from_bus(self, stream: str, subject_filter: str, query: Query, *, all_of_subject: bool) -> Any:
        chooses = query.chooses
        newest: dict[str, bytes] = {}
        canary = self._subjects.lease(CANARY_LEASE)  # nobody's heartbeat
        async with self._bus.follow(
            self._subjects.stream(stream), [subject_filter], last_per_subject=not all_of_subject
        ) as follower:
            async for event in follower:
                if isinstance(event, ReplayDone):
                    break
                if isinstance(event, Delivered) and event.marker is None and event.subject != canary:
                    identity = f"{event.subject} {_event_name(event.body)}" if all_of_subject else event.subject
                    newest.pop(identity, None)
                    newest[identity] = event.body
        chosen: list[msgspec.Raw] = []
        size = 0
        for body in reversed(newest.values()):
            document = _raw(body)
            if not isinstance(document, msgspec.Raw) or (chooses is not None and not chooses(_decode(body))):
                continue
            size += len(body)
            if len(chosen) >= query.limit or size > ANSWER_LIMIT:
                break
            chosen.append(document)
        return _list(chosen[::-1], "", None)

    async def _stored_kinds(self) -> tuple[str, ...]:
        counts = await self._store.census()
        return tuple(name.removeprefix("objects.") for name in counts if name.startswith("objects."))


def _list(items: list[msgspec.Raw], version: str, token: str | None) -> Mapping[str, Any]:
    result: dict[str, Any] = {"items": items, "resourceVersion": version}
    if token is not None:
        result["continue"] = token
    return result


def _event_name(body: bytes) -> str:
    """What tells Events about one object apart: their name, which stays while their count grows."""
    try:
        document = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    return str(section(document, "metadata").get("name") or "")


def _raw(body: bytes) -> Any:
    """JSON to be passed on as it is; what is no JSON object (anybody may publish) comes as null."""
    try:
        _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return msgspec.Raw(body)
