"""Requests that record Events: as Kubernetes' clients do, about an object, in the name of whoever sends them."""

from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.call import Call
from gardenbus.apiserver.domain.report_admission import reported_event
from gardenbus.apiserver.domain.responses import RequestResponse, success_response
from gardenbus.apiserver.registry.stored_names import StoredNames
from gardenbus.common.api.request_bodies import EventRequest
from gardenbus.common.errors import Conflict, NotFound
from gardenbus.common.ports.store import EventRecord, Store


class EventRequests:
    """Handles `event`."""

    def __init__(self, store: Store, authorizer: Authorizer) -> None:
        self._store = store
        self._authorizer = authorizer
        self._names = StoredNames(store)

    async def on_event(self, call: Call) -> RequestResponse:
        """Record an Event about the object that the subject names. Raises NotFound, Conflict, BadRequest."""
        wanted, requester = call.read(EventRequest), call.options.requester
        key = await self._names.key(call.tail)
        kind, reason, message, action = reported_event(
            {"type": wanted.type, "reason": wanted.reason, "message": wanted.message, "action": wanted.action}
        )
        await self._authorizer.permit_event(requester, key, call.reads)
        stored = await call.reads.get(key)
        if stored is None:
            await self._store.confirm_reads()
            raise NotFound(f"{key} not found: an Event is about an object that is there")
        if wanted.uid not in ("", stored.uid):
            raise Conflict(f"uid: {key} has the uid {stored.uid}: the Event is about one that is gone")
        record = EventRecord(key, stored.uid, kind, reason, message, requester.user, action)
        await self._store.record_event(record)
        return success_response({"uid": stored.uid, "reporter": requester.user})
