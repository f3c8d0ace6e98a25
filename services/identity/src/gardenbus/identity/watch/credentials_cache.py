"""Cache of issued credentials and of revocations, kept current by the informer."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import structlog

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.identity.bootstrap_tokens import is_token_secret, read_token
from gardenbus.common.api.identity.issued_credentials import (
    CREDENTIALS,
    PURPOSE_LABEL,
    IssuedCredentials,
    credentials_of_token,
    read_credentials,
)
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.revocations import (
    REVOCATIONS,
    Revocations,
    is_of_removal,
    lines_in,
    read_revocations,
)
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.clock import parse_timestamp

KINDS = ("secret", "configmap")
NAMESPACES: Mapping[str, str] = dict.fromkeys(KINDS, GARDEN_NAMESPACE)


_NEVER = object()

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class CredentialsCache:
    """Subscribe `changed` to an informer of `KINDS`, and to one of bootstrap tokens' Secrets.

    `on_withdrawn` is called with the users who may have lost their credentials, not for those that had ended:
    their sessions ended with them, and whoever is there has come in by others.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.on_withdrawn: Callable[[Sequence[str]], None] = lambda _: None
        self.on_removed: Callable[[Sequence[str]], None] = lambda _: None
        """Called with the users whose objects are removed; they may still hear of that."""
        self._now = now
        self._by_secret: dict[ObjectKey, IssuedCredentials] = {}
        self.issued: dict[str, list[IssuedCredentials]] = {}
        """By user, and by nkey."""
        self.revoked = Revocations()

    def principals(self) -> Iterable[Principal]:
        """All that have credentials here."""
        return [each.principal for each in self._by_secret.values()]

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Take over a change of a Secret, or of the revocations."""
        if key == REVOCATIONS:
            self._revoke(new)
        elif key.kind == "secret" and any(one is not None and _is_credentials(one) for one in (old, new)):
            withdrawn = self._remove(key)
            if new is not None and _is_credentials(new) and not new.is_deleting:
                self._add(key, new)
            if withdrawn is not None and withdrawn != self._by_secret.get(key) and self._now() < withdrawn.expires:
                self.on_withdrawn([withdrawn.principal.user])

    def _revoke(self, stored: StoredObject | None) -> None:
        try:
            lines: Mapping[str, str] = lines_in(stored) if stored else {}
        except BadRequest as error:  # what was revoked stays revoked
            log.warning("revocations.unreadable", object=str(REVOCATIONS), reason=str(error))
            return
        revoked = read_revocations(lines)
        added = [name for name, since in revoked.since.items() if self.revoked.since.get(name, _NEVER) != since]
        self.revoked = revoked
        removed = [name for name in added if is_of_removal(lines[name])]
        if others := [name for name in added if name not in removed]:
            self.on_withdrawn(others)
        if removed:
            self.on_removed(removed)

    def _add(self, key: ObjectKey, stored: StoredObject) -> None:
        try:
            credentials = _read(key, stored)
        except BadRequest as error:
            log.warning("credentials.unreadable", secret=str(key), reason=error.message)
            return
        self._by_secret[key] = credentials
        for name in _names(credentials):
            self.issued.setdefault(name, []).append(credentials)

    def _remove(self, key: ObjectKey) -> IssuedCredentials | None:
        credentials = self._by_secret.pop(key, None)
        for name in _names(credentials) if credentials else ():
            self.issued[name].remove(credentials)  # pyright: ignore[reportArgumentType]
            if not self.issued[name]:
                del self.issued[name]
        return credentials


def _names(credentials: IssuedCredentials) -> Sequence[str]:
    return [name for name in (credentials.sha256 and credentials.principal.user, credentials.nkey) if name]


def _is_credentials(stored: StoredObject) -> bool:
    is_labelled = stored.labels.get(PURPOSE_LABEL) == CREDENTIALS and stored.key.namespace == GARDEN_NAMESPACE
    return is_labelled or is_token_secret(stored.key)


def _read(key: ObjectKey, stored: StoredObject) -> IssuedCredentials:
    if not is_token_secret(key):
        return read_credentials(stored.encoded(), parse_timestamp(stored.created_at))
    token = read_token(stored.document())
    if not token.authenticates:
        raise BadRequest("data.usage-bootstrap-authentication: must be true")
    return credentials_of_token(token)
