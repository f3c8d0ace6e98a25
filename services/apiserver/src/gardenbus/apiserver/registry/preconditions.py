"""Preconditions of a request: versions and uids that its sender has read, of its object or of another one.

A sender states what its decision was based on (metadata.resourceVersion, metadata.uid, or the header
Gardenbus-Condition for another object): if that has changed, nothing is written, and the response is 409.
"""

from typing import NamedTuple

from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import StaleVersion
from gardenbus.common.api.document import Document, StoredObject, encode, section
from gardenbus.common.api.document_parts import without
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.api.manifests.parser import LARGEST_OBJECT
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.bus import Headers
from gardenbus.common.ports.store import WritePrecondition

_LONGEST_NUMBER = 18
"""Digits of a resourceVersion; more are none of the store's."""


class Precondition(NamedTuple):
    """A write happens only while the object has this version (0: while it is not there)."""

    key: ObjectKey
    version: int

    async def check(self, reads: ReadCache) -> None:
        """Raise StaleVersion when it does not hold by what was read."""
        stored = await reads.get(self.key)
        version = stored.version if stored is not None else 0
        if version != self.version:
            now = f"has version {version} by now" if version else "is not there (any more)"
            wanted = self.version or "its absence"
            raise StaleVersion(f"{Header.CONDITION}: {self.key} {now}, and the request depends on {wanted}")

    @property
    def guard(self) -> WritePrecondition:
        """The same as a guard, which the store checks in the write itself."""
        return WritePrecondition("version", self.key.stored, f"{self.key} has changed meanwhile", version=self.version)


def precondition_of(headers: Headers) -> Precondition | None:
    """The condition that a request carries: `<kind>.<namespace>.<name>=<resourceVersion>`. Raises BadRequest."""
    text = headers.get(Header.CONDITION, "")
    if not text:
        return None
    tail, _, version = text.rpartition("=")
    try:
        key = ObjectKey.from_tail(tail.strip())
    except ValueError as error:
        raise BadRequest(f"{Header.CONDITION}: must be <kind>.<namespace>.<name>=<resourceVersion>") from error
    version = version.strip()
    if not (version.isascii() and version.isdecimal() and len(version) <= _LONGEST_NUMBER):
        raise BadRequest(f"{Header.CONDITION}: {version[:40]!r} is no resourceVersion")
    return Precondition(key, int(version))


async def check_precondition(condition: Precondition | None, reads: ReadCache) -> None:
    """Raise StaleVersion when the precondition of a request does not hold."""
    if condition is not None:
        await condition.check(reads)


def guards_of(condition: Precondition | None) -> tuple[WritePrecondition, ...]:
    """Guards of a write under this precondition."""
    return () if condition is None else (condition.guard,)


def keys_of(condition: Precondition | None) -> tuple[ObjectKey, ...]:
    """The object that a precondition is about, if there is one."""
    return () if condition is None else (condition.key,)


def version_in(document: Document) -> str:
    """The version that a manifest was made for; "" when it states none."""
    version: object = section(document, "metadata").get("resourceVersion")
    return version if isinstance(version, str) else ""


def check_version(key: ObjectKey, base: StoredObject | None, wanted: str) -> None:
    """Raise StaleVersion unless the object has the version that is wanted ("": any)."""
    if not wanted:
        return
    if base is None:
        raise StaleVersion(f"metadata.resourceVersion: {key} not found; leave it out to create the object")
    if str(base.version) != wanted:
        raise StaleVersion(f"metadata.resourceVersion: {key} has version {base.version} by now, not {wanted}")


def check_uid(key: ObjectKey, base: StoredObject | None, given: Document) -> None:
    """Reject a change that was meant for an object that is gone, even if there is a new one of its name."""
    uid: object = section(given, "metadata").get("uid")
    if base is not None and isinstance(uid, str) and uid and uid != base.uid:
        raise StaleVersion(f"metadata.uid: {key} was created anew, with the uid {base.uid}; leave it out to change it")


def check_identity(current: Document, patched: Document) -> None:
    """Reject a patch that changes the identity of the object, and restore the fields that only the store may change."""
    for field in ("apiVersion", "kind"):
        if patched.get(field) != current[field]:
            raise BadRequest(f"{field}: a patch cannot change it")
    metadata = section(patched, "metadata")
    for field in ("name", "namespace"):
        if metadata.get(field) != current["metadata"].get(field):
            raise BadRequest(f"metadata.{field}: a patch cannot change it")
    for field in ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"):
        if field in current["metadata"]:
            metadata[field] = current["metadata"][field]
        else:
            metadata.pop(field, None)
    patched["metadata"] = metadata
    key_of(patched)


def check_size(document: Document) -> None:
    """Raise BadRequest for an object that is larger than objects may be; status does not count."""
    size = len(encode(without(document, "status")))
    if size > LARGEST_OBJECT:
        raise BadRequest(f"the object would have {size} bytes as JSON, {LARGEST_OBJECT} are allowed: make it smaller")
