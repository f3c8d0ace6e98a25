"""What a request may depend on: versions and uids that its sender has seen, of its object or of another one.

A sender that decided on something it read sends along what that was (metadata.resourceVersion, metadata.uid, or the
header Gardenbus-Condition for another object): if it has changed, nothing is written, and the answer is 409.
"""

from typing import NamedTuple

from gardenbus.apiserver.decide.manifests import LARGEST_OBJECT
from gardenbus.apiserver.decide.metadata import key_of
from gardenbus.apiserver.reconcilers.attempts import StaleVersion
from gardenbus.apiserver.reconcilers.reads import Reads
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.bus import Headers
from gardenbus.common.ports.store import Guard
from gardenbus.common.resources.document import Document, StoredObject, encode, section
from gardenbus.common.resources.keys import Header, ObjectKey

_LONGEST_NUMBER = 18
"""Digits of a resourceVersion; more are none of the store's."""


class Condition(NamedTuple):
    """A write happens only while the object has this version (0: while it is not there)."""

    key: ObjectKey
    version: int

    async def check(self, reads: Reads) -> None:
        """Raise StaleVersion when it does not hold by what was read."""
        stored = await reads.get(self.key)
        version = stored.version if stored is not None else 0
        if version != self.version:
            now = f"has version {version} by now" if version else "is not there (any more)"
            wanted = self.version or "its absence"
            raise StaleVersion(f"{Header.CONDITION}: {self.key} {now}, and the request depends on {wanted}")

    @property
    def guard(self) -> Guard:
        """The same for the store, which holds it against the write itself."""
        return Guard("version", self.key.stored, f"{self.key} has changed meanwhile", version=self.version)


def condition_in(headers: Headers) -> Condition | None:
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
    return Condition(key, int(version))


async def check_condition(condition: Condition | None, reads: Reads) -> None:
    """Raise StaleVersion when a request carries a condition that does not hold."""
    if condition is not None:
        await condition.check(reads)


def guards_of(condition: Condition | None) -> tuple[Guard, ...]:
    """What the store must hold against a write under this condition."""
    return () if condition is None else (condition.guard,)


def keys_of(condition: Condition | None) -> tuple[ObjectKey, ...]:
    """The object that a condition is about, if there is one."""
    return () if condition is None else (condition.key,)


def version_in(document: Document) -> str:
    """The version that a manifest was made for; "" when it does not say."""
    version: object = section(document, "metadata").get("resourceVersion")
    return version if isinstance(version, str) else ""


def check_version(key: ObjectKey, base: StoredObject | None, wanted: str) -> None:
    """Raise StaleVersion unless the object has the version that is wanted ("": any)."""
    if not wanted:
        return
    if base is None:
        raise StaleVersion(
            f"metadata.resourceVersion: {key} is not there (any more); leave it out to create the object"
        )
    if str(base.version) != wanted:
        raise StaleVersion(f"metadata.resourceVersion: {key} has version {base.version} by now, not {wanted}")


def check_uid(key: ObjectKey, base: StoredObject | None, given: Document) -> None:
    """Refuse what was meant for an object that is gone; what is not there may be made again, under a new uid."""
    uid: object = section(given, "metadata").get("uid")
    if base is not None and isinstance(uid, str) and uid and uid != base.uid:
        raise StaleVersion(f"metadata.uid: {key} was created anew, with the uid {base.uid}; leave it out to change it")


def check_identity(current: Document, patched: Document) -> None:
    """Refuse a patch that would make another object of it, and keep what only the store may change."""
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
    size = len(encode({name: value for name, value in document.items() if name != "status"}))
    if size > LARGEST_OBJECT:
        raise BadRequest(f"the object would have {size} bytes as JSON, {LARGEST_OBJECT} are allowed: make it smaller")
