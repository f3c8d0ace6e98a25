"""Writes short-lived credentials into the Secrets that request them, and removes those that have ended.

What credentials are checked with is a Secret of its own. The requesting Secret is written first, by the replica whose
write is the first on its version; whichever replica looks at it next sees to it that the other is there, under a name
that follows from the password: who dies in between leaves nothing that another does not finish. Old credentials are
good until their own end, unless the requesting Secret is gone or names somebody else.
"""

import contextlib
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import assert_never

import structlog

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.identity.issued_credentials import read_credentials
from gardenbus.common.api.identity.requested_tokens import PURPOSE_LABEL, TOKEN_REQUESTOR, requested_principal
from gardenbus.common.api.identity.revocations import Revocations
from gardenbus.common.api.identity.roles import LANDSCAPE_ROLES
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.controller.delaying_queue import DelayingQueue
from gardenbus.common.controller.wait import RETRY_SECONDS
from gardenbus.common.errors import AlreadyExists, BadRequest, NotFound
from gardenbus.common.ports.clock import Clock, timestamp
from gardenbus.common.ports.store import EventRecord, Store
from gardenbus.identity.domain.token_requests import (
    REQUESTED_BY_ANNOTATION,
    Issue,
    Keep,
    RejectIdentity,
    RequestedToken,
    checking_secret,
    decide,
    read_token_request,
    renewal,
    with_token,
)

REJECTED_SECONDS = 600.0
"""After which a request that was rejected is looked at again: roles and revocations change."""

REPORTER = "identity"
_PASSWORD_BYTES = 32

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class TokenRequestorController:
    """Subscribe `changed` to an informer of the namespace `garden`'s Secrets."""

    def __init__(
        self, store: Store, clock: Clock, revoked: Callable[[], Revocations], authorities: Callable[[], str]
    ) -> None:
        self._store = store
        self._clock = clock
        self._authorities = authorities
        self._revoked = revoked
        self._requesters: dict[ObjectKey, str] = {}
        """By the Secret that credentials are checked with: the name of the requesting one."""
        self.queue: DelayingQueue[ObjectKey] = DelayingQueue(
            self.reconcile, clock=clock, controller="token-requestor", retry_seconds=RETRY_SECONDS
        )

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Enqueue a requesting Secret and what it has requested, or what was requested."""
        if key.kind != "secret" or key.namespace != GARDEN_NAMESPACE:
            return
        if any(one is not None and _is_request(one) for one in (old, new)):
            for each in (key, *(issued for issued, name in self._requesters.items() if name == key.name)):
                self.queue.add(each)
        elif new is None:
            self._requesters.pop(key, None)
        elif requester := _requester(new):
            self._requesters[key] = requester[0]
            self.queue.add(key)

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Reconcile a Secret by its state in the store. Raises Transient."""
        stored = await self._store.get(key)
        if stored is None or stored.is_deleting:
            return None
        if requester := _requester(stored):
            return await self._remove_ended(stored, *requester)
        return await self._provide(stored) if _is_request(stored) else None

    async def _provide(self, stored: StoredObject) -> float | None:
        now = self._clock.now()
        try:
            request = read_token_request(stored.document())
        except BadRequest as error:
            await self._reject(stored, error.message)
            return None
        roles = await self._store.get(LANDSCAPE_ROLES)
        decision = decide(
            request, roles.document() if roles is not None else None, self._revoked(), self._authorities(), now
        )
        match decision:
            case RejectIdentity():
                await self._reject(stored, decision.message)
                return REJECTED_SECONDS
            case Keep():
                await self._check_with(stored, request)
                return (decision.until - now).total_seconds()
            case Issue():
                return await self._issue(stored, request, now)
            case _:
                assert_never(decision)

    async def _issue(self, stored: StoredObject, request: RequestedToken, now: datetime) -> float:
        password = secrets.token_urlsafe(_PASSWORD_BYTES)
        written = await self._store.update(
            stored, with_token(stored.document(), request, password, self._authorities(), now)
        )
        assert isinstance(written, StoredObject)
        await self._check_with(written, read_token_request(written.document()))
        about = {"user": request.principal.user, "requester": stored.key.name}
        log.info("credentials.issued", **about, expires=timestamp(now + request.life))
        return (renewal(now, request.life) - now).total_seconds()

    async def _check_with(self, stored: StoredObject, request: RequestedToken) -> None:
        """See to it that there is a Secret which the credentials are checked with."""
        secret = checking_secret(request, f"{stored.key.name}/{stored.uid}")
        if secret is None or await self._store.get(ObjectKey("secret", GARDEN_NAMESPACE, secret["metadata"]["name"])):
            return
        with contextlib.suppress(AlreadyExists):  # another replica was faster
            await self._store.create(secret)

    async def _remove_ended(self, stored: StoredObject, name: str, uid: str) -> float | None:
        """Remove what has expired, or what nobody requests any more."""
        now = self._clock.now()
        try:
            credentials = read_credentials(stored.encoded())
        except BadRequest:  # nobody comes in by it
            return None
        requesting = await self._store.get(ObjectKey("secret", GARDEN_NAMESPACE, name))
        is_requested = requesting is not None and requesting.uid == uid and not requesting.is_deleting
        if is_requested and requesting is not None and _is_request(requesting):
            with contextlib.suppress(BadRequest):
                requested = requested_principal(requesting.document())
                if requested == credentials.principal and now < credentials.expires:
                    return (credentials.expires - now).total_seconds()
        with contextlib.suppress(NotFound):  # another replica was faster
            await self._store.delete(stored)
            log.info("credentials.removed", user=credentials.principal.user, requester=name, secret=stored.key.name)
        return None

    async def _reject(self, stored: StoredObject, message: str) -> None:
        log.warning("credentials.rejected", secret=stored.key.name, reason=message)
        about = (stored.key, stored.uid, "Warning", "TokenRejected", message, REPORTER, "Request")
        await self._store.record_event(EventRecord(*about))


def _is_request(stored: StoredObject) -> bool:
    return stored.labels.get(PURPOSE_LABEL) == TOKEN_REQUESTOR


def _requester(stored: StoredObject) -> tuple[str, str] | None:
    """Name and uid of the Secret that credentials were requested by."""
    metadata = section(stored.document(), "metadata")
    name, _, uid = str(section(metadata, "annotations").get(REQUESTED_BY_ANNOTATION, "")).partition("/")
    return (name, uid) if uid else None
