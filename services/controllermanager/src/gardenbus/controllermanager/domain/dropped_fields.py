"""Fields of a shoot's spec that a newer Kubernetes does not have: an update across that version takes them out.

Source: Gardener's `pkg/controllermanager/controller/shoot/maintenance/reconciler.go`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.expirable_versions import Numbers, numbers_of
from gardenbus.common.api.garden.kubernetes_features import DROPPED_FIELDS

_PROVIDERS = "dns.providers[].secretName"


class CleanedSpec(NamedTuple):
    """A spec without the fields that an update drops, and the sentences about them."""

    spec: Document
    operations: tuple[str, ...]


def without_dropped_fields(spec: Document, before: object) -> CleanedSpec:
    """The spec of a shoot after an update from the version `before`; itself where nothing is dropped."""
    version = section(spec, "kubernetes").get("version")
    operations: list[str] = []
    for first, path in DROPPED_FIELDS:
        if not numbers_of(before)[:2] < first <= numbers_of(version)[:2]:
            continue
        cleaned = _without_secret_names(spec) if path == _PROVIDERS else _without(spec, path.split("."))
        if cleaned is not spec:
            operations.append(f".spec.{path} was removed. Reason: Kubernetes has no use for it from {_text(first)} on")
            spec = cleaned
    return CleanedSpec(spec, tuple(operations))


def _without(mapping: Document, path: Sequence[str]) -> Document:
    name, below = path[0], path[1:]
    if mapping.get(name) is None:
        return mapping
    if not below:
        return {field: value for field, value in mapping.items() if field != name}
    inner = section(mapping, name)
    cleaned = _without(inner, below)
    return mapping if cleaned is inner else {**mapping, name: cleaned}


def _without_secret_names(spec: Document) -> Document:
    providers = mappings(section(spec, "dns").get("providers"))
    cleaned = [_without(_with_reference(provider), ["secretName"]) for provider in providers]
    if all(new is old for new, old in zip(cleaned, providers, strict=True)):
        return spec
    return {**spec, "dns": {**section(spec, "dns"), "providers": cleaned}}


def _with_reference(provider: Document) -> Document:
    """A provider whose Secret is named by `credentialsRef` too, as Gardener's API server keeps it."""
    name = provider.get("secretName")
    if not isinstance(name, str) or not name or provider.get("credentialsRef"):
        return provider
    return {**provider, "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": name}}


def _text(version: Numbers) -> str:
    return ".".join(map(str, version))
