"""Envelopes: objects that carry manifests to clusters without having them take effect in the garden.

A ClusterResourceEnvelope holds cluster-scoped manifests, a ResourceEnvelope those of its own namespace. Each becomes a
Work of its own.
Source: KubeFleet's `pkg/controllers/workgenerator/envelope.go`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from gardenbus.common.api.document import Document, canonical, section
from gardenbus.common.api.kinds import KINDS, PLACEMENT

CLUSTER_ENVELOPE, ENVELOPE = "ClusterResourceEnvelope", "ResourceEnvelope"
ENVELOPE_KINDS = frozenset({CLUSTER_ENVELOPE, ENVELOPE})

TYPE_LABEL = "kubernetes-fleet.io/envelope-work"
NAME_LABEL = "kubernetes-fleet.io/envelope-name"
NAMESPACE_LABEL = "kubernetes-fleet.io/envelope-namespace"


def is_envelope(document: Mapping[str, Any]) -> bool:
    """True for an envelope of either kind."""
    group = str(document.get("apiVersion") or "").partition("/")[0]
    return group == PLACEMENT and document.get("kind") in ENVELOPE_KINDS


def manifests_in(envelope: Document) -> list[Document]:
    """The manifests of an envelope, in an order of their own. Raises ValueError for one that is out of place."""
    found: list[Document] = []
    for name, manifest in sorted(section(envelope, "data").items()):
        if problem := manifest_problem(envelope, manifest):
            raise ValueError(
                f"{envelope.get('kind')} {section(envelope, 'metadata').get('name')}: data.{name}: {problem}"
            )
        found.append(cast("Document", manifest))
    return sorted(found, key=canonical)


def manifest_problem(envelope: Mapping[str, Any], manifest: object) -> str | None:
    """Reason why a manifest may not be in an envelope."""
    if not isinstance(manifest, dict):
        return "must be a manifest"
    content = cast("Document", manifest)
    metadata = section(content, "metadata")
    if not content.get("apiVersion") or not content.get("kind") or not metadata.get("name"):
        return "needs apiVersion, kind and metadata.name"
    if is_envelope(content):
        return "is an envelope itself"
    namespace, own = metadata.get("namespace"), section(envelope, "metadata").get("namespace")
    if envelope.get("kind") == ENVELOPE and namespace != own:
        return f"metadata.namespace must be {own!r}, that of the envelope, and is {namespace!r}"
    if envelope.get("kind") == CLUSTER_ENVELOPE and (namespace or _is_namespaced(content)):
        return "is of a namespace: put it into a ResourceEnvelope there"
    return None


def labels_of(envelope: Document) -> dict[str, str]:
    """Labels of the Work of an envelope."""
    metadata = section(envelope, "metadata")
    return {
        TYPE_LABEL: str(envelope["kind"]),
        NAME_LABEL: str(metadata["name"]),
        NAMESPACE_LABEL: str(metadata.get("namespace") or ""),
    }


def reference(labels: Mapping[str, str]) -> Document | None:
    """The envelope that a Work came from, as in `failedPlacements`."""
    if TYPE_LABEL not in labels:
        return None
    place = {"namespace": labels[NAMESPACE_LABEL]} if labels.get(NAMESPACE_LABEL) else {}
    return {"type": labels[TYPE_LABEL], "name": labels.get(NAME_LABEL, ""), **place}


def suffix_of(envelope: Document) -> str:
    """The part of a Work's name that identifies its envelope."""
    labels = labels_of(envelope)
    text = "/".join(labels[name] for name in (TYPE_LABEL, NAMESPACE_LABEL, NAME_LABEL))
    return f"envelope-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def split(resources: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """Objects to be applied as they are, and envelopes."""
    return [each for each in resources if not is_envelope(each)], [each for each in resources if is_envelope(each)]


def _is_namespaced(manifest: Document) -> bool:
    kind = KINDS.get(str(manifest["kind"]).lower())
    group = str(manifest["apiVersion"]).rpartition("/")[0]
    return kind is not None and kind.group == group and kind.namespaced is True
