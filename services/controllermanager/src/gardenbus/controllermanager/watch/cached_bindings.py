"""SecretBindings, CredentialsBindings and BackupBuckets of the informer, by what they refer to."""

from collections.abc import Sequence

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.backup_references import credentials_in_garden
from gardenbus.common.api.garden.credentials_bindings import BINDING_KINDS, credentials_of, references_of
from gardenbus.common.api.keys import ObjectKey

REFERRING_KINDS = (*BINDING_KINDS, "backupbucket")
"""Kinds that protect what they refer to: bindings, and buckets by their credentials."""


def credentials_named_by(document: Document) -> ObjectKey | None:
    """The credentials that an object of these kinds refers to."""
    return credentials_in_garden(document) if document.get("kind") == "BackupBucket" else credentials_of(document)


def _references(document: Document) -> Sequence[ObjectKey]:
    if document.get("kind") != "BackupBucket":
        return [ObjectKey.from_stored(each) for each in references_of(document)]
    credentials = credentials_in_garden(document)
    return () if credentials is None else (credentials,)


class CachedBindings:
    """Subscribe `changed` to an informer of these kinds before its readers; it may be older than the store."""

    def __init__(self) -> None:
        self._references: dict[ObjectKey, Sequence[ObjectKey]] = {}
        self._bindings: dict[ObjectKey, dict[ObjectKey, Document]] = {}
        """By what is referred to: the bindings, by their keys."""

    def changed(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Note what a binding or a bucket refers to."""
        if key.kind not in REFERRING_KINDS:
            return
        for referred in self._references.pop(key, ()):
            bindings = self._bindings[referred]
            del bindings[key]
            if not bindings:
                del self._bindings[referred]
        if new is not None:
            binding = new.document()
            self._references[key] = _references(binding)
            for referred in self._references[key]:
                self._bindings.setdefault(referred, {})[key] = binding

    def is_referred_to(self, key: ObjectKey) -> bool:
        """True while a binding or a bucket refers to an object."""
        return key in self._bindings

    def referring_to(self, key: ObjectKey) -> Sequence[Document]:
        """The bindings and buckets that refer to an object."""
        return list(self._bindings.get(key, {}).values())
