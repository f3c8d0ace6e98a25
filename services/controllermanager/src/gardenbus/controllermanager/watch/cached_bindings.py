"""SecretBindings and CredentialsBindings of the informer, by what they refer to."""

from collections.abc import Sequence

from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.credentials_bindings import BINDING_KINDS, references_of
from gardenbus.common.api.keys import ObjectKey


class CachedBindings:
    """Subscribe `changed` to an informer of both kinds before its readers; it may be older than the store."""

    def __init__(self) -> None:
        self._references: dict[ObjectKey, Sequence[ObjectKey]] = {}
        self._bindings: dict[ObjectKey, dict[ObjectKey, Document]] = {}
        """By what is referred to: the bindings, by their keys."""

    def changed(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Note what a binding refers to."""
        if key.kind not in BINDING_KINDS:
            return
        for referred in self._references.pop(key, ()):
            bindings = self._bindings[referred]
            del bindings[key]
            if not bindings:
                del self._bindings[referred]
        if new is not None:
            binding = new.document()
            self._references[key] = [ObjectKey.from_stored(each) for each in references_of(binding)]
            for referred in self._references[key]:
                self._bindings.setdefault(referred, {})[key] = binding

    def is_referred_to(self, key: ObjectKey) -> bool:
        """True while a binding refers to an object."""
        return key in self._bindings

    def referring_to(self, key: ObjectKey) -> Sequence[Document]:
        """The bindings that refer to an object."""
        return list(self._bindings.get(key, {}).values())
