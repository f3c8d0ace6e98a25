"""Credentials that end with the objects that they are for.

| object | whose credentials end with it |
|---|---|
| Seed | its gardenlet's, its extension's |
| MemberCluster | its agent's |
| ManagedSeed, Gardenlet | those of its Seed, which was never registered, or has gone |
| ServiceAccount | its own |
| Namespace | those of its ServiceAccounts |

Whatever removes such an object for good calls `end_with` first: what was issued until then is revoked, and its Secrets
are deleted. A process that dies in between leaves an object that is still there, and is removed later. A connection
that is still open when its object has gone is closed soon; `check_registration` keeps it from making the object again.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.identity import bootstrap_tokens
from gardenbus.common.api.identity.issued_credentials import CREDENTIALS, PURPOSE_LABEL, read_credentials
from gardenbus.common.api.identity.principals import SERVICE_ACCOUNT_PREFIX, Principal, Role
from gardenbus.common.api.identity.requested_tokens import PURPOSE_LABEL as REQUEST_LABEL
from gardenbus.common.api.identity.requested_tokens import TOKEN_REQUESTOR, requested_principal
from gardenbus.common.api.identity.revocations import (
    REMOVED,
    REVOCATIONS,
    Revocations,
    lines_in,
    revocation,
    revocations_in,
    without_outlived,
)
from gardenbus.common.api.identity.signing_requests import NOT_AFTER, SERIAL, SINGULAR, USER
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.errors import AlreadyExists, BadRequest, Conflict, Forbidden, NotFound, Unavailable
from gardenbus.common.ports.clock import Clock, parse_timestamp
from gardenbus.common.ports.store import Objects

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

LONGEST_SESSION = timedelta(hours=1)
"""Time after which each session that was open at a revocation has ended: the identity service's default."""

ATTEMPTS = 25
_PAUSE_SECONDS = 0.02

_OF_SEEDS: tuple[Role, ...] = ("gardenlet", "extension")
_ROLES: Mapping[str, tuple[Role, ...]] = {
    "seed": _OF_SEEDS,
    "membercluster": ("member-agent",),
    "managedseed": _OF_SEEDS,
    "gardenlet": _OF_SEEDS,
}
"""By kind: the roles of those who act for an object, and have its name."""

_MAKES_SEED = ("managedseed", "gardenlet")

_ENDS = "clientCertificateExpirationTimestamp"


class AgentCredentials:
    """See the module. Raises Unavailable."""

    def __init__(self, store: Objects, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def is_certificate_alive(self, principal: Principal, status: Document) -> bool:
        """True while the certificate that an agent's object has in its status has neither ended nor been revoked."""
        written = status.get(_ENDS)
        ends = parse_timestamp(written)
        if ends is None or ends <= self._clock.now():
            return False
        revoked = await self._revoked()
        if not revoked.since:
            return True
        issued = [each async for each in self._certificates_of(principal)]
        records = [each for each in issued if each.annotations.get(NOT_AFTER) == written]
        if not records:
            return not revoked.rejects(principal.user)
        return not all(_is_revoked(each, principal, revoked) for each in records)

    async def end_with(self, stored: StoredObject) -> None:
        """Revoke what was issued to those whose credentials end with an object that is about to be removed."""
        key = stored.key
        is_whose = _whose(key)
        if is_whose is None or (key.kind in _MAKES_SEED and await self._store.get(ObjectKey("seed", "", key.name))):
            return
        secrets = [each async for each in self._secrets_of(is_whose)]
        users = {principal.user for principal, _ in secrets}
        for principal in (Principal(role, key.name) for role in _ROLES.get(key.kind, ())[:1]):
            if section(stored.document(), "status").get(_ENDS) or await self._has_certificate(principal):
                users.add(principal.user)
        if users:
            await self._revoke(sorted(users))
        for _, secret in secrets:
            if not _is_request(secret):  # whose is an operator's own: it gets nothing more
                with contextlib.suppress(NotFound, Conflict):  # it is revoked, and ends by itself
                    await self._store.delete(secret)
        if users:
            log.info("credentials.revoked", object=str(key), users=sorted(users))

    async def check_registration(self, principal: Principal) -> None:
        """Raise Forbidden unless an agent whose object is not there has credentials of after the last one's removal."""
        since = (revoked := await self._revoked()).since.get(principal.user)
        if principal.user not in revoked.since or (since and self._clock.now() - since > LONGEST_SESSION):
            return
        if since is not None:
            if any([True async for each in self._certificates_of(principal) if _is_newer(each, since)]):
                return
            if any([True async for _, each in self._secrets_of(principal.__eq__) if _is_newer(each, since)]):
                return
        raise Forbidden(
            f"the credentials of {principal.user} were revoked, and it was issued none since: what was removed is not "
            "registered again by them (gardenbus token create)"
        )

    # ------------------------------------------------------------------------------------------ records

    async def _revoked(self) -> Revocations:
        stored = await self._store.get(REVOCATIONS)
        return revocations_in(stored) if stored is not None else Revocations()

    async def _has_certificate(self, principal: Principal) -> bool:
        return any([True async for _ in self._certificates_of(principal)])

    async def _certificates_of(self, principal: Principal) -> AsyncGenerator[StoredObject]:
        """The records of the certificates that were issued to somebody, and of those that do not say to whom."""
        async for stored in self._all(SINGULAR, None):
            is_issued = bool(section(stored.document(), "status").get("certificate"))  # which its signer alone writes
            if is_issued and stored.annotations.get(USER) in (principal.user, None):
                yield stored

    async def _secrets_of(
        self, is_whose: Callable[[Principal], bool]
    ) -> AsyncGenerator[tuple[Principal, StoredObject]]:
        """The Secrets that credentials of some are checked with, or requested by, and their own bootstrap tokens."""
        for namespace in (GARDEN_NAMESPACE, bootstrap_tokens.NAMESPACE):
            async for stored in self._all("secret", namespace):
                owner = _owner_of(stored)
                if owner is not None and is_whose(owner):
                    yield owner, stored

    async def _all(self, kind: str, namespace: str | None) -> AsyncGenerator[StoredObject]:
        token: str | None = None
        while True:
            page = await self._store.list_page(kind, namespace, continue_token=token)
            for stored in page.objects:
                yield stored
            token = page.continue_token
            if not token:
                return

    async def _revoke(self, users: Sequence[str]) -> None:
        """Write the lines of these. Raises Unavailable when others write all the time."""
        for _ in range(ATTEMPTS):
            now, stored = self._clock.now(), await self._store.get(REVOCATIONS)
            lines = {user: line for user in users for line in revocation(user, now, REMOVED)["data"].values()}
            try:
                if stored is None:
                    await self._store.create({**revocation(users[0], now, REMOVED), "data": lines})
                else:
                    kept = without_outlived(lines_in(stored), now)
                    await self._store.update(stored, {**stored.document(), "data": {**kept, **lines}})
            except (Conflict, AlreadyExists, NotFound):
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                return
        raise Unavailable(f"{REVOCATIONS} keeps changing")


def _is_newer(stored: StoredObject, since: datetime) -> bool:
    created = parse_timestamp(stored.created_at)
    return created is not None and created > since


def _is_revoked(record: StoredObject, principal: Principal, revoked: Revocations) -> bool:
    serial = str(record.annotations.get(SERIAL) or "")
    return revoked.rejects(principal.user, serial, parse_timestamp(record.created_at))


def _whose(key: ObjectKey) -> Callable[[Principal], bool] | None:
    """Predicate of the principals whose credentials end with an object; None for an object of another kind."""
    match key.kind:
        case "serviceaccount":
            user = f"{SERVICE_ACCOUNT_PREFIX}{key.namespace}:{key.name}"
            return lambda principal: principal.user == user
        case "namespace":
            prefix = f"{SERVICE_ACCOUNT_PREFIX}{key.name}:"
            return lambda principal: principal.user.startswith(prefix)
        case kind:
            principals = [Principal(role, key.name) for role in _ROLES.get(kind, ())]
            return principals.__contains__ if principals else None


def _is_request(stored: StoredObject) -> bool:
    return stored.labels.get(REQUEST_LABEL) == TOKEN_REQUESTOR


def _owner_of(stored: StoredObject) -> Principal | None:
    """Principal that the credentials in a Secret are for; None for another Secret, or for nobody in particular."""
    try:
        if bootstrap_tokens.is_token_secret(stored.key):
            return bootstrap_tokens.read_token(stored.document()).bound_to
        if stored.labels.get(PURPOSE_LABEL) == CREDENTIALS:
            return read_credentials(stored.encoded()).principal
        if _is_request(stored) and stored.key.namespace == GARDEN_NAMESPACE:
            return requested_principal(stored.document())
    except BadRequest:
        pass
    return None
