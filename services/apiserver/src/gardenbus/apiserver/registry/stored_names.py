"""Objects and lists by the words in a subject, also of kinds that are only stored."""

from gardenbus.apiserver.domain.request_subjects import ListTarget, key_of_tail, list_target_of_tail
from gardenbus.apiserver.registry.stored_kinds import stored_kinds
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Unsupported
from gardenbus.common.ports.store import Store


class StoredNames:
    """Reads tails of subjects. Raises BadRequest, Unsupported."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def key(self, tail: str) -> ObjectKey:
        """The object that `<kind>.<namespace>.<name>` names."""
        try:
            return key_of_tail(tail)
        except Unsupported:
            return key_of_tail(tail, await stored_kinds(self._store))

    async def list_target(self, tail: str) -> ListTarget:
        """Kind and namespace of the list `<kind>[.<namespace>]`."""
        try:
            return list_target_of_tail(tail)
        except Unsupported:
            return list_target_of_tail(tail, await stored_kinds(self._store))

    async def explained_key(self, tail: str) -> ObjectKey:
        """The shoot or the seed that is to be explained, of a shoot also as `<namespace>.<name>`."""
        namespace, _, name = tail.partition(".")
        is_short = name and "." not in name and namespace not in ("seed", "seeds")
        key = ObjectKey("shoot", namespace, name) if is_short else await self.key(tail)
        if key.kind not in ("shoot", "seed"):
            raise Unsupported(f"explain.{tail}: shoots and seeds are explained")
        return key
