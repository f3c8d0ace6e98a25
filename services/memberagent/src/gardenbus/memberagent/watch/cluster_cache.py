"""Cache of one cluster: its MemberCluster, and the Works in its namespace.

Absence proves nothing: an object was deleted only if its tombstone was observed.
"""

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import ObjectKey


class ClusterCache:
    """See the module. `is_complete`: the whole stream has been replayed."""

    def __init__(self, *, is_complete: bool = False) -> None:
        self.cluster: Document | None = None
        self.cluster_is_gone = False
        """True if its MemberCluster was deleted: it is not registered again."""
        self.works: dict[str, Document] = {}
        self.removed_works: set[str] = set()
        """Works that were deleted, and not created again."""
        self.is_complete = is_complete
        self._unreplayed: set[str] = set()
        self._cluster_is_unreplayed = False

    @property
    def is_leaving(self) -> bool:
        """True while the MemberCluster is being deleted."""
        return self.cluster is not None and bool(section(self.cluster, "metadata").get("deletionTimestamp"))

    def update(self, key: ObjectKey, document: Document | None) -> None:
        """Store an object; None when it was deleted."""
        if key.kind == "membercluster":
            self._cluster_is_unreplayed = False
            self.cluster_is_gone = document is None
            self.cluster = document
            return
        self._unreplayed.discard(key.name)
        if document is None:
            self.works.pop(key.name, None)
            self.removed_works.add(key.name)
        else:
            self.works[key.name] = document
            self.removed_works.discard(key.name)

    def replay_began(self) -> None:
        """Start a replay; cached objects stay for now."""
        self.is_complete = False
        self._unreplayed = set(self.works)
        self._cluster_is_unreplayed = True

    def replay_ended(self) -> None:
        """End a replay: objects that were not in it were deleted meanwhile, or lost by the stream."""
        self.is_complete = True
        for name in self._unreplayed:
            self.works.pop(name, None)
        self._unreplayed.clear()
        if self._cluster_is_unreplayed:
            self.cluster = None
        self._cluster_is_unreplayed = False
