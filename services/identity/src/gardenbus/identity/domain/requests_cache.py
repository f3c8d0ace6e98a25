"""Cache of signing requests, by key and by the name that they are for: the record of what was issued."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.revocations import Revocations
from gardenbus.common.api.identity.signing_requests import SigningRequest, read_signing_request
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest
from gardenbus.credentials.certificates import key_digest, requested_principal


class _Cached(NamedTuple):
    request: SigningRequest
    principal: Principal | None
    digest: str


class RequestsCache:
    """Subscribe `changed` to an informer of `certificatesigningrequest`."""

    def __init__(self) -> None:
        self._cached: dict[str, _Cached] = {}
        self._by_principal: dict[Principal, set[str]] = {}
        self._by_digest: dict[str, set[str]] = {}

    def changed(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Take over a change of a request."""
        self._remove(key.name)
        if new is None:
            return
        cached = self._cached[key.name] = _read(read_signing_request(new))
        if cached.principal is not None:
            self._by_principal.setdefault(cached.principal, set()).add(key.name)
            self._by_digest.setdefault(cached.digest, set()).add(key.name)

    def principals(self) -> Iterable[Principal]:
        """All that a certificate was issued to."""
        return [principal for principal in self._by_principal if self.issued_to(principal)]

    def issued_to(self, principal: Principal) -> Sequence[SigningRequest]:
        """Requests of certificates that were issued to a principal, the newest last."""
        requests = (self._cached[name].request for name in self._by_principal.get(principal, ()))
        return sorted((each for each in requests if each.certificate), key=lambda each: (each.created_at, each.name))

    def with_same_key(self, request: SigningRequest) -> Sequence[str]:
        """Names of the requests before this one that are for the same key."""
        digest = _read(request).digest
        others = (self._cached[name].request for name in self._by_digest.get(digest, ()) if name != request.name)
        own = (request.created_at, request.name)
        return sorted(each.name for each in others if (each.created_at, each.name) < own)

    def user_of(self, serial: str) -> str | None:
        """The user that a certificate was issued to; None when there is no record of it."""
        return next(
            (each.principal.user for each in self._cached.values() if each.principal and each.request.serial == serial),
            None,
        )

    def living_ends(self, principal: Principal, revocations: Revocations, now: datetime) -> Sequence[datetime]:
        """The ends of a principal's certificates that live."""
        return [
            each.not_after
            for each in self.issued_to(principal)
            if each.not_after is not None
            and each.not_after > now
            and not revocations.rejects(principal.user, each.serial, each.created_at)
        ]

    def _remove(self, name: str) -> None:
        cached = self._cached.pop(name, None)
        if cached is None or cached.principal is None:
            return
        for index, entry in ((self._by_principal, cached.principal), (self._by_digest, cached.digest)):
            index[entry].discard(name)  # pyright: ignore[reportArgumentType]
            if not index[entry]:  # pyright: ignore[reportArgumentType]
                del index[entry]  # pyright: ignore[reportArgumentType]


def _read(request: SigningRequest) -> _Cached:
    try:
        return _Cached(request, requested_principal(request.pem), key_digest(request.pem))
    except BadRequest:
        return _Cached(request, None, "")
