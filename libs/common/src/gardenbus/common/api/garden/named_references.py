"""Objects that a Shoot names in its namespace, or a Seed in `garden`: Secrets, ConfigMaps and WorkloadIdentities.

Source: Gardener's `pkg/controllermanager/controller/{shoot,seed}/reference` and its plugin ResourceReferenceManager.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey

REFERABLE_KINDS: Mapping[tuple[str, str], str] = {
    ("v1", "Secret"): "secret",
    ("v1", "ConfigMap"): "configmap",
    ("security.gardener.cloud/v1alpha1", "WorkloadIdentity"): "workloadidentity",
}
"""Kinds that `spec.resources` may name, by their API version and kind."""

CREDENTIAL_KINDS: Sequence[tuple[str, str]] = [each for each in REFERABLE_KINDS if each[1] != "ConfigMap"]
"""Those that credentials are in, by their API version and kind."""

REFERENCED_KINDS: Sequence[str] = tuple(REFERABLE_KINDS.values())


def named_reference(key: ObjectKey) -> str:
    """The reference of Shoots, Seeds and Plants to what they name, as an index value: apart from those of bindings."""
    return f"named/{key.stored}"


class NamedReference(NamedTuple):
    """An object that is named, and the path of the field that does."""

    path: str
    key: ObjectKey


def named_references(document: Document) -> Iterator[NamedReference]:
    """The objects that a Shoot or a Seed names, read leniently."""
    spec, namespace = section(document, "spec"), str(section(document, "metadata").get("namespace") or "")
    named = _of_resources(spec)
    if document.get("kind") == "Seed":
        namespace = GARDEN_NAMESPACE
    else:
        named = chain(_of_dns(spec), _of_api_server(spec), named)
    for path, kind, name in named:
        if name and isinstance(name, str):
            yield NamedReference(f"spec.{path}", ObjectKey(kind, namespace, name))


def _of_dns(spec: Document) -> Iterator[tuple[str, str, Any]]:
    for index, provider in enumerate(mappings(section(spec, "dns").get("providers"))):
        path = f"dns.providers[{index}]"
        yield f"{path}.secretName", "secret", provider.get("secretName")
        yield from _of_reference(f"{path}.credentialsRef", section(provider, "credentialsRef"))


def _of_api_server(spec: Document) -> Iterator[tuple[str, str, Any]]:
    server, path = section(spec, "kubernetes", "kubeAPIServer"), "kubernetes.kubeAPIServer"
    if not server:
        return
    audit = section(server, "auditConfig", "auditPolicy", "configMapRef")
    yield f"{path}.auditConfig.auditPolicy.configMapRef", "configmap", audit.get("name")
    for field in ("structuredAuthentication", "structuredAuthorization"):
        yield f"{path}.{field}.configMapName", "configmap", section(server, field).get("configMapName")
    for index, kubeconfig in enumerate(mappings(section(server, "structuredAuthorization").get("kubeconfigs"))):
        here = f"{path}.structuredAuthorization.kubeconfigs[{index}].secretName"
        yield here, "secret", kubeconfig.get("secretName")
    for index, plugin in enumerate(mappings(server.get("admissionPlugins"))):
        yield f"{path}.admissionPlugins[{index}].kubeconfigSecretName", "secret", plugin.get("kubeconfigSecretName")


def _of_resources(spec: Document) -> Iterator[tuple[str, str, Any]]:
    for index, resource in enumerate(mappings(spec.get("resources"))):
        yield from _of_reference(f"resources[{index}].resourceRef", section(resource, "resourceRef"))


def _of_reference(path: str, reference: Document) -> Iterator[tuple[str, str, Any]]:
    if kind := REFERABLE_KINDS.get((str(reference.get("apiVersion")), str(reference.get("kind")))):
        yield path, kind, reference.get("name")
