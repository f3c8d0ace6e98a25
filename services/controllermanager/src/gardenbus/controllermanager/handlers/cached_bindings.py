"""SecretBindings and CredentialsBindings out of the informer's cache, by what they refer to."""

from collections.abc import Iterator, Sequence

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.credentials_bindings import BINDING_KINDS, references_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.enqueue_on_change import ObjectLister


class CachedBindings:
    """Reads an informer that follows both kinds; what it says may be older than the store."""

    def __init__(self, objects: ObjectLister) -> None:
        self._objects = objects

    def referring_to(self, key: ObjectKey) -> Sequence[Document]:
        """The bindings that refer to an object."""
        return [binding for _, binding, references in self._all() if key in references]

    def referring_into(self, namespace: str) -> Sequence[ObjectKey]:
        """The bindings, of any namespace, that refer to something in a namespace."""
        return [key for key, _, references in self._all() if any(each.namespace == namespace for each in references)]

    def _all(self) -> Iterator[tuple[ObjectKey, Document, Sequence[ObjectKey]]]:
        for kind in BINDING_KINDS:
            for key, stored in tuple(self._objects.objects(kind).items()):
                binding = stored.document()
                yield key, binding, [ObjectKey.from_stored(each) for each in references_of(binding)]
