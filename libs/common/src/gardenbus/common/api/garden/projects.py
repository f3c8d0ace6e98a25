"""Projects: a typed view."""

from gardenbus.common.api.garden.shoots import Toleration
from gardenbus.common.api.views import Metadata, TypedView


class ProjectTolerations(TypedView, frozen=True):
    """Tolerations that its shoots get (`defaults`) and may have (`whitelist`)."""

    defaults: tuple[Toleration, ...] = ()
    whitelist: tuple[Toleration, ...] = ()


class ProjectSpec(TypedView, frozen=True):
    """Fields of a Project's spec."""

    namespace: str = ""
    """Namespace of the Project."""

    tolerations: ProjectTolerations = ProjectTolerations()


class Project(TypedView, frozen=True):
    """A Project; it owns one namespace."""

    metadata: Metadata = Metadata()
    spec: ProjectSpec = ProjectSpec()

    @property
    def allowed_tolerations(self) -> tuple[tuple[str, str | None], ...]:
        """Key and value of tolerations that its shoots may have: its whitelist, and its own defaults."""
        lists = self.spec.tolerations
        return tuple((toleration.key, toleration.value) for toleration in (*lists.whitelist, *lists.defaults))

    @property
    def namespace(self) -> str:
        """Its namespace: `garden-<name>` unless it names one."""
        return self.spec.namespace or f"garden-{self.metadata.name}"
