"""Projects: a typed view."""

from gardenbus.common.resources.document import Document
from gardenbus.common.resources.shoots import Toleration
from gardenbus.common.resources.views import Metadata, View, read_view


class ProjectTolerations(View, frozen=True):
    """Which tolerations its shoots get (`defaults`) and may ask for (`whitelist`)."""

    defaults: tuple[Toleration, ...] = ()
    whitelist: tuple[Toleration, ...] = ()


class ProjectSpec(View, frozen=True):
    """What is read of a Project's spec."""

    namespace: str = ""
    """The namespace that is its own."""

    tolerations: ProjectTolerations = ProjectTolerations()


class Project(View, frozen=True):
    """A Project; it owns one namespace."""

    metadata: Metadata = Metadata()
    spec: ProjectSpec = ProjectSpec()

    @classmethod
    def from_document(cls, document: Document | bytes) -> "Project":
        """Read the view; raises InvalidResource when a field has the wrong type."""
        return read_view(document, cls)

    @property
    def allowed_tolerations(self) -> tuple[tuple[str, str | None], ...]:
        """Key and value of what its shoots may tolerate: its whitelist, and what it gives them itself."""
        lists = self.spec.tolerations
        return tuple((toleration.key, toleration.value) for toleration in (*lists.whitelist, *lists.defaults))

    @property
    def namespace(self) -> str:
        """Its namespace: `garden-<name>` unless it names one."""
        return self.spec.namespace or f"garden-{self.metadata.name}"
