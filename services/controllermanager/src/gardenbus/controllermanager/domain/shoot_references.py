"""Objects that shoots use, and that must not go before them: Secrets, ConfigMaps and WorkloadIdentities.

Source: Gardener's `pkg/controller/reference` and `pkg/controllermanager/controller/shoot/reference`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.profile_parts import mappings
from gardenbus.common.api.index_keys import FINALIZER as GARDENER_FINALIZER
from gardenbus.common.api.keys import ObjectKey

FINALIZER = "gardener.cloud/reference-protection"
GARDEN_ROLE = "gardener.cloud/role"
"""A Secret with this label is Gardener's own: nobody else has to protect it."""

_KINDS: Mapping[tuple[str, str], str] = {
    ("v1", "Secret"): "secret",
    ("v1", "ConfigMap"): "configmap",
    ("security.gardener.cloud/v1alpha1", "WorkloadIdentity"): "workloadidentity",
}
PROTECTED_KINDS: Sequence[str] = tuple(_KINDS.values())


def referenced_objects(shoot: Document) -> frozenset[ObjectKey]:
    """The objects that a shoot uses; none once it is being deleted and no gardenlet holds it any more."""
    metadata, spec = section(shoot, "metadata"), section(shoot, "spec")
    if metadata.get("deletionTimestamp") and GARDENER_FINALIZER not in _texts(metadata.get("finalizers")):
        return frozenset()
    namespace = str(metadata.get("namespace") or "")
    named = (*_of_dns(spec), *_of_api_server(spec), *_of_resources(spec))
    return frozenset(ObjectKey(kind, namespace, name) for kind, name in named if name and isinstance(name, str))


def with_protection(document: Document, *, is_protected: bool) -> Document | None:
    """The object with, or without, the finalizer; None when nothing changes. One that is being deleted gets none."""
    metadata = section(document, "metadata")
    finalizers = _texts(metadata.get("finalizers"))
    if is_protected == (FINALIZER in finalizers) or (is_protected and metadata.get("deletionTimestamp")):
        return None
    others = [name for name in finalizers if name != FINALIZER]
    return {**document, "metadata": {**metadata, "finalizers": [*others, FINALIZER] if is_protected else others}}


class ReferenceIndex:
    """Counts the shoots that use each object."""

    def __init__(self) -> None:
        self._users: Counter[ObjectKey] = Counter()
        self._used: dict[ObjectKey, frozenset[ObjectKey]] = {}

    def replace(self, shoot: ObjectKey, references: frozenset[ObjectKey]) -> Sequence[ObjectKey]:
        """Record what a shoot uses now; return what nothing uses any more, in order."""
        before = self._used.pop(shoot, frozenset())
        if references:
            self._used[shoot] = references
        self._users.update(references)
        self._users.subtract(before)
        unused = sorted(key for key in before if self._users[key] <= 0)
        for key in unused:
            del self._users[key]
        return unused

    def is_used(self, key: ObjectKey) -> bool:
        """True when a shoot uses it."""
        return self._users[key] > 0


def _of_dns(spec: Document) -> Iterator[tuple[str, Any]]:
    for provider in mappings(section(spec, "dns").get("providers")):
        yield "secret", provider.get("secretName")
        credentials = section(provider, "credentialsRef")
        if kind := _KINDS.get((str(credentials.get("apiVersion")), str(credentials.get("kind")))):
            yield kind, credentials.get("name")


def _of_api_server(spec: Document) -> Iterator[tuple[str, Any]]:
    server = section(spec, "kubernetes", "kubeAPIServer")
    yield "configmap", section(server, "auditConfig", "auditPolicy", "configMapRef").get("name")
    yield "configmap", section(server, "structuredAuthentication").get("configMapName")
    authorization = section(server, "structuredAuthorization")
    yield "configmap", authorization.get("configMapName")
    for kubeconfig in mappings(authorization.get("kubeconfigs")):
        yield "secret", kubeconfig.get("secretName")
    for plugin in mappings(server.get("admissionPlugins")):
        yield "secret", plugin.get("kubeconfigSecretName")


def _of_resources(spec: Document) -> Iterator[tuple[str, Any]]:
    for resource in mappings(spec.get("resources")):
        reference = section(resource, "resourceRef")
        if kind := _KINDS.get((str(reference.get("apiVersion")), str(reference.get("kind")))):
            yield kind, reference.get("name")


def _texts(value: Any) -> list[str]:
    return [str(each) for each in cast("list[Any]", value)] if isinstance(value, list) else []
