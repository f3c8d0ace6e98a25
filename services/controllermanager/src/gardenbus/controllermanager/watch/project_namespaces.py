"""Projects by the namespaces that they own, out of the informer's cache."""

from gardenbus.common.api.document import StoredObject, section
from gardenbus.common.api.keys import ObjectKey

KIND = "project"


class ProjectNamespaces:
    """Subscribe `changed` to an informer of Projects before its readers."""

    def __init__(self) -> None:
        self._projects: dict[str, ObjectKey] = {}
        self._namespaces: dict[ObjectKey, str] = {}

    def changed(self, key: ObjectKey, _old: StoredObject | None, new: StoredObject | None) -> None:
        """Note a Project's namespace."""
        if key.kind != KIND:
            return
        before = self._namespaces.pop(key, "")
        if self._projects.get(before) == key:
            del self._projects[before]
        namespace = "" if new is None else str(section(new.document(), "spec").get("namespace") or "")
        if namespace:
            self._namespaces[key] = namespace
            self._projects[namespace] = key

    def project_of(self, namespace: str) -> ObjectKey | None:
        """The Project of a namespace; None where there is none."""
        return self._projects.get(namespace)
