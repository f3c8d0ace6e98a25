"""Requests that write: `apply`, `patch`, `delete`, `bind` and `scale`.

A request comes, in the order of the bus, after all durable requests that were stored before it. Each object that it
names is authorized by itself.
"""

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import msgspec

from gardenbus.apiserver.access.authorizer import Authorizer, MessagePermits, NotPermitted
from gardenbus.apiserver.call import Call, RequestOptions
from gardenbus.apiserver.domain.admission_trace import AdmissionTrace
from gardenbus.apiserver.domain.authorization.actions import BIND, Action
from gardenbus.apiserver.domain.responses import RequestResponse, combined_response, error_response, success_response
from gardenbus.apiserver.domain.validation.manifest import key_of_applied
from gardenbus.apiserver.domain.validation.metadata import reference_of
from gardenbus.apiserver.registry.dry_run import DryRunStore, explains
from gardenbus.apiserver.registry.loop_turn import LoopTurn
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency, WriteResult, cause_of
from gardenbus.apiserver.registry.scale import read_scale, scale_of, write_scale
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.stored_kinds import stored_reference
from gardenbus.apiserver.registry.stored_names import StoredNames
from gardenbus.apiserver.registry.writer import REQUEST_REPLY, Writer
from gardenbus.common.api.confirmation import CONFIRMING_PATCH
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.manifests.parser import parse, read_object
from gardenbus.common.api.request_bodies import BindRequest, MergePatch, ScaleRequest
from gardenbus.common.controller.shared_query import SharedQuery
from gardenbus.common.errors import BadRequest, Forbidden, GardenbusError
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import RequestOrigin, Store
from gardenbus.common.side_thread import beside_loop


class WriteSession(NamedTuple):
    """Writer, reads and origin for one request; that of a dry run has no place in the order of the bus."""

    writer: Writer
    reads: ReadCache
    origin: RequestOrigin | None
    trace: AdmissionTrace | None = None
    permits: MessagePermits | None = None
    """Decisions about the writes of the request."""


@dataclass(kw_only=True)
class WriteRequests:
    """Handles them; any number at a time."""

    store: Store
    clock: Clock
    writer: Writer
    seed_binder: SeedBinder
    manifests: ManifestCache
    authorizer: Authorizer
    position: SharedQuery[StreamPosition]
    """The position of REQUESTS."""

    def __post_init__(self) -> None:
        self._names = StoredNames(self.store)

    async def on_apply(self, call: Call) -> RequestResponse:
        """Create or update what the body holds."""
        options = call.options
        documents = await beside_loop(len(call.body), partial(parse, call.body))
        session = await self._write_session(options)
        return await _written_together(
            (self._applied(document, session, options) for document in documents), session.trace
        )

    async def _applied(self, document: Document, session: WriteSession, options: RequestOptions) -> WriteResult:
        turn = LoopTurn()
        key = key_of_applied(document)
        await turn.let_others_in()
        granted = await self.authorizer.grant_write(
            options.requester, "apply", key, session.reads, document, permits=session.permits
        )
        written = await session.writer.apply(
            document,
            session.reads,
            user=options.user,
            origin=session.origin,
            key=key,
            condition=options.condition,
            checks=granted.checks,
            validation=options.validation,
        )
        granted.written(written.outcome, is_dry_run=options.is_dry_run)
        return written

    async def on_patch(self, call: Call) -> RequestResponse:
        """Patch the object that the subject or the body names."""
        options = call.options
        if call.tail:
            key = await self._names.key(call.tail)
            otherwise = "send a JSON merge patch: one JSON object"
            patch = await beside_loop(len(call.body), partial(read_object, call.body, otherwise))
        else:
            wanted = await beside_loop(len(call.body), partial(call.read, MergePatch))
            key = reference_of({"kind": wanted.kind, "namespace": wanted.namespace, "name": wanted.name})
            patch = wanted.patch
        session = await self._write_session(options)
        granted = await self.authorizer.grant_write(options.requester, "patch", key, session.reads, patch)
        written = await session.writer.patch(
            key,
            patch,
            session.reads,
            user=options.user,
            origin=session.origin,
            condition=options.condition,
            checks=granted.checks,
            validation=options.validation,
        )
        granted.written(written.outcome, is_dry_run=options.is_dry_run)
        return _write_response(written)

    async def on_delete(self, call: Call) -> RequestResponse:
        """Delete what the subject names, or what the body holds or refers to."""
        options = call.options
        deletions = [(await self._names.key(call.tail), False)] if call.tail else []
        turn = LoopTurn()
        for document in () if call.tail else await beside_loop(len(call.body), partial(parse, call.body)):
            await turn.let_others_in()
            confirms = _confirms(document)
            deletions.append((await stored_reference(self.store, document), confirms))
        session = await self._write_session(options)
        return await _written_together(
            self._deleted(session, key, options, confirms=confirms) for key, confirms in deletions
        )

    async def _deleted(
        self, session: WriteSession, key: ObjectKey, options: RequestOptions, *, confirms: bool
    ) -> WriteResult:
        """Delete an object; with `confirms` after it was annotated so, which then is what the precondition is about."""
        granted = await self.authorizer.grant_write(
            options.requester, "delete", key, session.reads, permits=session.permits
        )
        condition = options.condition
        if confirms:
            await session.writer.patch(
                key, CONFIRMING_PATCH, session.reads, user=options.user, origin=session.origin, condition=condition
            )
            condition = condition if condition is None or condition.key != key else None
        user = None if options.requester.is_controller else options.user
        written = await session.writer.delete(key, session.reads, user=user, origin=session.origin, condition=condition)
        granted.written(written.outcome, is_dry_run=options.is_dry_run)
        return written

    async def on_bind(self, call: Call) -> RequestResponse:
        """Place a shoot, or move it."""
        wanted, options = call.read(BindRequest), call.options
        granted = await self.authorizer.grant(options.requester, Action.on(BIND, wanted.shoot), call.reads)
        written = await self.seed_binder.bind(wanted, call.reads, user=options.user, condition=options.condition)
        granted.written(f"bound to {wanted.seed}")
        return _write_response(written)

    async def on_scale(self, call: Call) -> RequestResponse:
        """Read a set's replicas, or set them."""
        wanted, options = call.read(ScaleRequest), call.options
        if wanted.replicas is None:
            await self.authorizer.permit(options.requester, Action.on("get", wanted.key), call.reads)
            return success_response(await read_scale(wanted, call.reads))
        session = await self._write_session(options)
        await self.authorizer.permit(options.requester, Action.on("scale", wanted.key), session.reads)
        written = await write_scale(
            wanted,
            wanted.replicas,
            session.writer,
            session.reads,
            user=options.user,
            origin=session.origin,
            condition=options.condition,
        )
        scale = scale_of(written.stored) if written.stored is not None else None
        return success_response(scale, written.warnings, outcome=written.outcome)

    async def _write_session(self, options: RequestOptions) -> WriteSession:
        """Session for a request that writes; a dry run shares nothing that it could leave a trace in."""
        permits = MessagePermits(options.requester)
        if options.is_dry_run:
            dry_run_store = DryRunStore(self.store, self.clock)
            trace = AdmissionTrace(self.writer.admission) if explains(options.headers) else None
            return WriteSession(
                Writer(dry_run_store, self.clock, trace.admission if trace else self.writer.admission),
                ReadCache(dry_run_store, ManifestCache(dry_run_store)),
                None,
                trace,
                permits,
            )
        position = await self.position.get()
        return WriteSession(
            self.writer,
            ReadCache(self.store, self.manifests),
            RequestOrigin(position.created, position.sequence, REQUEST_REPLY),
            permits=permits,
        )


def _confirms(document: Document) -> bool:
    """True when `confirm` confirms a deletion in the same request. Raises BadRequest."""
    confirms = document.get("confirm", False)
    if not isinstance(confirms, bool):
        raise BadRequest("confirm: must be true or false")
    return confirms


async def _written_together(
    writes: Iterable[Coroutine[Any, Any, WriteResult]], trace: AdmissionTrace | None = None
) -> RequestResponse:
    """Carries writes out, one after another; one that is rejected keeps none of the others from it.

    But nothing behind one that its requester may not make is tried.
    """
    responses: list[RequestResponse] = []
    not_tried: RequestResponse | None = None
    turn = LoopTurn()
    for number, write in enumerate(writes, 1):
        await turn.let_others_in()
        if not_tried is not None:
            write.close()
            responses.append(not_tried)
            continue
        try:
            responses.append(_write_response(await write))
        except NotPermitted as error:
            responses.append(error_response(error))
            not_tried = error_response(Forbidden(f"not carried out, as document {number} is not permitted"))
        except (UnmetDependency, GardenbusError) as error:
            responses.append(error_response(cause_of(error)))
        if trace is not None:
            responses[-1] = msgspec.structs.replace(responses[-1], admission=trace.taken())
    return combined_response(responses)


def _write_response(written: WriteResult) -> RequestResponse:
    """The response to a write; each warning names its object."""
    key = written.key
    warnings = [f"{key}: {warning}" for warning in written.warnings]
    if written.stored is not None:
        return success_response(msgspec.Raw(written.stored.encoded()), warnings, outcome=written.outcome)
    left: dict[str, Any] = {"kind": key.kind, "namespace": key.namespace, "name": key.name, "deleted": True}
    return success_response(left, warnings, outcome=written.outcome)
