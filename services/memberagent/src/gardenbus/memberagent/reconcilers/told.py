"""What was told of one cluster: its MemberCluster, and the Works in its namespace. Hints: the stream may know more."""

from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey


class Told:
    """See the module. `is_complete`: all that the stream held has been told."""

    def __init__(self, *, is_complete: bool = False) -> None:
        self.cluster: Document | None = None
        self.cluster_is_gone = False
        """Whether its MemberCluster was removed: it is not registered again."""
        self.works: dict[str, Document] = {}
        self.is_complete = is_complete
        self._unheard: set[str] = set()
        self._cluster_is_unheard = False

    @property
    def is_leaving(self) -> bool:
        """Whether the cluster is on its way out of the fleet."""
        return self.cluster is not None and bool(section(self.cluster, "metadata").get("deletionTimestamp"))

    def take(self, key: ObjectKey, document: Document | None) -> None:
        """Take in what an object is now; None when it was removed."""
        if key.kind == "membercluster":
            self._cluster_is_unheard = False
            self.cluster_is_gone = document is None
            self.cluster = document
            return
        self._unheard.discard(key.name)
        if document is None:
            self.works.pop(key.name, None)
        else:
            self.works[key.name] = document

    def replay_began(self) -> None:
        """The stream is read anew. What was told stays for now."""
        self.is_complete = False
        self._unheard = set(self.works)
        self._cluster_is_unheard = True

    def replay_ended(self) -> None:
        """All that the stream holds has been told; what it does not hold has been removed meanwhile."""
        self.is_complete = True
        for name in self._unheard:
            self.works.pop(name, None)
        self._unheard.clear()
        if self._cluster_is_unheard and self.cluster is not None:
            self.cluster, self.cluster_is_gone = None, True
        self._cluster_is_unheard = False
