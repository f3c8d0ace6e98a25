"""Requests that patch the status of an object: those of operators, and of controllers that act for them.

Gardenlets and member agents report theirs on the bus instead, where stamps decide which report is the newer.
"""

from functools import partial

import msgspec

from gardenbus.apiserver.access.authorizer import AccessGrant, Authorizer
from gardenbus.apiserver.call import Call
from gardenbus.apiserver.domain.authorization.actions import UPDATE_STATUS, Action
from gardenbus.apiserver.domain.controller_owned_kinds import reject_controller_owned
from gardenbus.apiserver.domain.report_admission import bumps_generation
from gardenbus.apiserver.domain.responses import RequestResponse, success_response
from gardenbus.apiserver.domain.status_patches import status_patch_in, with_patched_status
from gardenbus.apiserver.registry.dry_run import DryRunStore
from gardenbus.apiserver.registry.preconditions import check_precondition, guards_of, keys_of
from gardenbus.apiserver.registry.retry_on_conflict import Missing, WriteResult, retry_on_conflict
from gardenbus.apiserver.registry.stored_names import StoredNames
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.manifests.parser import read_object
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.common.side_thread import beside_loop


class StatusRequests:
    """Handles `status`."""

    def __init__(self, store: Store, clock: Clock, authorizer: Authorizer) -> None:
        self._store = store
        self._clock = clock
        self._authorizer = authorizer
        self._names = StoredNames(store)

    async def on_status(self, call: Call) -> RequestResponse:
        """Patch the status of the object that the subject names. Raises NotFound, Conflict, InvalidResource."""
        options = call.options
        key = await self._names.key(call.tail)
        body = await beside_loop(len(call.body), partial(read_object, call.body, 'send {"status": {…}}'))
        patch = status_patch_in(body)
        reject_controller_owned(key)
        granted = await self._authorizer.grant(options.requester, Action.on(UPDATE_STATUS, key), call.reads)
        written = await self._write(call, key, patch, granted)
        granted.written(written.outcome, is_dry_run=options.is_dry_run)
        assert written.stored is not None
        return success_response(msgspec.Raw(written.stored.encoded()), outcome=written.outcome)

    async def _write(self, call: Call, key: ObjectKey, patch: Document, granted: AccessGrant) -> WriteResult:
        reads, condition = call.reads, call.options.condition
        store = DryRunStore(self._store, self._clock) if call.options.is_dry_run else self._store

        async def attempt() -> WriteResult:
            await check_precondition(condition, reads)
            base = await reads.get(key)
            if base is None:
                await self._store.confirm_reads()
                raise Missing(f"{key} not found")

            def change() -> tuple[Document, Document]:
                document = base.document()
                return document, with_patched_status(document, patch, self._clock.now())

            document, patched = await beside_loop(base.size + len(call.body), change)
            granted.check_change(document, patched)
            if patched == document:
                return WriteResult(key, "unchanged", base)
            stored = await store.update(
                base,
                patched,
                bump_generation=key.kind == "shoot" and bumps_generation(document, patched),
                preconditions=guards_of(condition),
            )
            assert isinstance(stored, StoredObject)
            return WriteResult(key, "configured", stored)

        return await retry_on_conflict(attempt, (key, *keys_of(condition)), reads, self._clock)
