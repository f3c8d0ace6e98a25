"""Cache of issued credentials and of revocations, kept current by the informer."""

from collections.abc import Collection, Mapping, Sequence

import msgspec
import structlog

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.errors import BadRequest
from gardenbus.identity.domain.issued_credentials import (
    CREDENTIALS,
    PURPOSE_LABEL,
    IssuedCredentials,
    read_credentials,
)

KINDS = ("secret", "configmap")
NAMESPACES: Mapping[str, str] = dict.fromkeys(KINDS, GARDEN_NAMESPACE)

REVOCATIONS = ObjectKey("configmap", GARDEN_NAMESPACE, "revoked-credentials")
"""Its `data` has a line for each user, or serial number of a certificate (lower-case hexadecimal): when, and why."""


class _Revocations(msgspec.Struct):
    data: dict[str, str] = {}


_decode_revocations = json_decoder(_Revocations)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class CredentialsCache:
    """Subscribe `changed` to an informer of `KINDS`."""

    def __init__(self) -> None:
        self._by_secret: dict[ObjectKey, IssuedCredentials] = {}
        self.issued: dict[str, list[IssuedCredentials]] = {}
        """By user, and by nkey."""
        self.revoked: Collection[str] = frozenset()
        """Users and serial numbers."""

    def changed(self, key: ObjectKey, old: StoredObject | None, new: StoredObject | None) -> None:
        """Take over a change of a Secret, or of the revocations."""
        if key == REVOCATIONS:
            self._revoke(new)
        elif key.kind == "secret" and any(one is not None and _is_credentials(one) for one in (old, new)):
            self._remove(key)
            if new is not None and _is_credentials(new) and not new.is_deleting:
                self._add(key, new)

    def _revoke(self, stored: StoredObject | None) -> None:
        try:
            self.revoked = frozenset(_decode_revocations(stored.encoded()).data if stored else ())
        except msgspec.MsgspecError as error:  # what was revoked stays revoked
            log.warning("revocations.unreadable", object=str(REVOCATIONS), reason=str(error))

    def _add(self, key: ObjectKey, stored: StoredObject) -> None:
        try:
            credentials = read_credentials(stored.encoded())
        except BadRequest as error:
            log.warning("credentials.unreadable", secret=str(key), reason=error.message)
            return
        self._by_secret[key] = credentials
        for name in _names(credentials):
            self.issued.setdefault(name, []).append(credentials)

    def _remove(self, key: ObjectKey) -> None:
        credentials = self._by_secret.pop(key, None)
        for name in _names(credentials) if credentials else ():
            self.issued[name].remove(credentials)  # pyright: ignore[reportArgumentType]
            if not self.issued[name]:
                del self.issued[name]


def _names(credentials: IssuedCredentials) -> Sequence[str]:
    return [name for name in (credentials.sha256 and credentials.principal.user, credentials.nkey) if name]


def _is_credentials(stored: StoredObject) -> bool:
    return stored.labels.get(PURPOSE_LABEL) == CREDENTIALS
