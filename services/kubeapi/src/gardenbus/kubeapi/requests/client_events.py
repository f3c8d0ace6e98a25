"""Records Events: those that clients create, in either group, and those of which they raise the count.

The landscape counts repetitions and names Events itself: a client that patches one by the name that it gave gets
NotFound, and creates it again, as client-go does.
"""

import secrets
from typing import Any

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import DEFAULT_NAMESPACE, ObjectKey
from gardenbus.common.api.kinds import by_word
from gardenbus.common.errors import GardenbusError, NotFound
from gardenbus.kubeapi.api_client import ImpersonatingClient
from gardenbus.kubeapi.domain.bodies import read_body, read_json
from gardenbus.kubeapi.domain.manifests import named_in, with_generated_name
from gardenbus.kubeapi.domain.patches.strategic import merged_strategically
from gardenbus.kubeapi.domain.resources import EVENTS
from gardenbus.kubeapi.domain.statuses import Rejected
from gardenbus.kubeapi.requests.reads import key_of
from gardenbus.kubeapi.requests.responses import ApiRequest, ObjectResponse, object_response
from gardenbus.kubeapi.watch.caches import Caches

_CREATED = 201
_OTHER_NAMES = {"regarding": "involvedObject", "note": "message"}
"""Fields of `events.k8s.io` and what the core group calls them."""


class ClientEvents:
    """Handles creations and changes of Events."""

    def __init__(self, api: ImpersonatingClient, caches: Caches) -> None:
        self._api = api
        self._caches = caches

    async def record(self, request: ApiRequest) -> ObjectResponse:
        """Record an Event. Raises NotFound, Rejected, and what the apiserver rejects it with."""
        if request.info.verb == "create":
            given = named_in(read_body(request.body, request.content_type), request.info)
            event, _ = with_generated_name(given, secrets.token_hex(4))
        else:
            event = await self._changed(request)
        about = _about(request, event)
        body = {
            "type": event.get("type") or "Normal",
            "reason": event.get("reason") or "",
            "message": _field(request, event, "note") or "",
            "action": event.get("action") or "",
            "uid": section(event, _name_of(request, "regarding")).get("uid") or "",
        }
        if not request.info.query.get("dryRun"):
            await self._api.request(request.user.acting, f"event.{about.tail}", body)
        return object_response(event, _CREATED if request.info.verb == "create" else 200)

    async def _changed(self, request: ApiRequest) -> Document:
        """An Event that is there, as a request changes it."""
        await self._caches.until_read(self._caches.events)
        cached = self._caches.events.get(key_of(request))
        if cached is None:
            raise NotFound(f"{key_of(request)} not found")
        present = cached.document()
        if request.info.resource is EVENTS:
            others = {other: name for name, other in _OTHER_NAMES.items()}
            present = {others.get(name, name): value for name, value in present.items()}
        if request.info.verb == "update":
            return named_in(read_body(request.body, request.content_type), request.info)
        patch: Any = read_json(request.body)
        if not isinstance(patch, dict):
            raise Rejected(415, "UnsupportedMediaType", "an Event takes merge patches: application/merge-patch+json")
        return merged_strategically(present, patch)  # pyright: ignore[reportUnknownArgumentType]


def _name_of(request: ApiRequest, name: str) -> str:
    """A field's name in the group of the request."""
    return name if request.info.resource is EVENTS else _OTHER_NAMES[name]


def _field(request: ApiRequest, event: Document, name: str) -> Any:
    return event.get(_name_of(request, name))


def _about(request: ApiRequest, event: Document) -> ObjectKey:
    """The object that an Event is about. Raises Rejected where it names none of its namespace."""
    field = _name_of(request, "regarding")
    about = section(event, field)
    kind, name, namespace = (str(about.get(each) or "") for each in ("kind", "name", "namespace"))
    if not kind or not name:
        raise _invalid(field, "name the kind, namespace and name of an object")
    try:
        spec = by_word(kind.lower())
    except GardenbusError as error:
        raise _invalid(f"{field}.kind", error.message) from error
    own = "" if spec.namespaced is False else namespace
    if request.info.namespace != (own or DEFAULT_NAMESPACE):
        raise _invalid(f"{field}.namespace", f"{namespace!r} does not match the Event's, {request.info.namespace}")
    return ObjectKey(spec.singular, own, name)


def _invalid(field: str, message: str) -> Rejected:
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": field}]
    return Rejected(422, "Invalid", f"{field}: {message}", causes)
