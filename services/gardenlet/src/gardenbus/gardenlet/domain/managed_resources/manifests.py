"""Manifests of a ManagedResource: decoded out of its Secrets, with namespaces and labels put in.

Source: Gardener's `pkg/resourcemanager/controller/managedresource/reconciler.go`; Kubernetes' `YAMLOrJSONDecoder`.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.apply_order import rank_of
from gardenbus.common.api.manifests.strict_yaml import read_yaml
from gardenbus.common.errors import BadRequest
from gardenbus.gardenlet.domain.managed_resources.names import (
    COMPRESSED_SUFFIX,
    MANAGED_BY,
    MANAGED_BY_VALUE,
    MODE,
    MODE_IGNORE,
    annotations_of,
)
from gardenbus.gardenlet.domain.managed_resources.references import reference_of

Decompress = Callable[[bytes], bytes]
"""Decompresses what Brotli has compressed. Raises ValueError."""

_SEPARATOR = "---"


class SecretData(NamedTuple):
    """A Secret with its decoded values."""

    namespace: str
    name: str
    data: Mapping[str, bytes]


class DecodedManifest(NamedTuple):
    """A manifest as it stands in a Secret. `value` is that of the Secret's key, for the checksum."""

    document: Document
    value: bytes


class Bundle(NamedTuple):
    """All that the Secrets of a ManagedResource hold; a problem for each document that cannot be decoded."""

    manifests: Sequence[DecodedManifest]
    problems: Sequence[str]


def decode_secrets(secrets: Sequence[SecretData], decompress: Decompress) -> Bundle:
    """Decode all documents of Secrets in their order, of each the keys in theirs. Empty documents are left out."""
    manifests: list[DecodedManifest] = []
    problems: list[str] = []
    for secret in secrets:
        for key, value in sorted(secret.data.items()):
            where = f"in '{key}' in secret '{secret.namespace}/{secret.name}'"
            for number, decoded in enumerate(_documents(key, value, decompress)):
                if isinstance(decoded, str):
                    problems.append(f"Could not decode resource at index {number} {where}: {decoded}.")
                elif decoded is not None:
                    manifests.append(DecodedManifest(decoded, value))
    return Bundle(manifests, problems)


def decoding_message(problems: Sequence[str]) -> str:
    """Message of the condition when documents could not be decoded."""
    return f"Could not decode all new resources: [{' '.join(problems)}]"


def checksum_of(manifests: Sequence[DecodedManifest]) -> str:
    """Checksum of status.secretsDataChecksum: each object counts with the whole value that it stands in."""
    total = hashlib.sha256()
    for each in manifests:
        total.update(each.value)
    return total.hexdigest()


def with_namespace(document: Document, *, namespaced: bool | None) -> Document:
    """The manifest with the namespace that its kind needs; `namespaced` None: the cluster does not serve the kind."""
    metadata = section(document, "metadata")
    namespace = str(metadata.get("namespace") or "")
    if namespaced is None:
        namespaced = document.get("kind") != "Namespace" or bool(namespace)
    if namespaced:
        return document if namespace else {**document, "metadata": {**metadata, "namespace": "default"}}
    if not namespace:
        return document
    return {**document, "metadata": {name: value for name, value in metadata.items() if name != "namespace"}}


def labels_to_inject(managed_resource: Document) -> dict[str, str]:
    """Labels that all objects of a ManagedResource get."""
    return {**section(managed_resource, "spec", "injectLabels"), MANAGED_BY: MANAGED_BY_VALUE}


def is_left_out(document: Document) -> bool:
    """True for a manifest whose object is not to be managed (any more)."""
    return annotations_of(document).get(MODE) == MODE_IGNORE


def with_labels(document: Document, labels: Mapping[str, str]) -> Document:
    """The manifest with labels in its metadata, those of its pods and of its volume claims; selectors stay."""
    labelled = _labelled(document, labels)
    spec = section(labelled, "spec")
    changed: Document = {}
    if isinstance(spec.get("template"), dict):
        changed["template"] = _labelled(spec["template"], labels)
    claims: Any = spec.get("volumeClaimTemplates")
    if isinstance(claims, list):
        changed["volumeClaimTemplates"] = [
            _labelled(cast("Document", each), labels) if isinstance(each, dict) else each
            for each in cast("list[Any]", claims)
        ]
    return {**labelled, "spec": {**spec, **changed}} if changed else labelled


def in_apply_order(documents: Sequence[Document]) -> list[int]:
    """Positions of manifests in the order in which they are applied: that of Helm, then by kind and name."""

    def place(position: int) -> tuple[int, str, str]:
        reference = reference_of(documents[position])
        return (rank_of(reference.kind), reference.kind, reference.name)

    return sorted(range(len(documents)), key=place)


def _labelled(document: Document, labels: Mapping[str, str]) -> Document:
    metadata = section(document, "metadata")
    return {**document, "metadata": {**metadata, "labels": {**section(metadata, "labels"), **labels}}}


# ---------------------------------------------------------------------------------------------- streams of documents


def _documents(key: str, value: bytes, decompress: Decompress) -> Iterator[Document | str | None]:
    """Each document of a value: itself, None for an empty one, or why it cannot be decoded."""
    try:
        text = (decompress(value) if key.endswith(COMPRESSED_SUFFIX) else value).decode()
    except ValueError as error:
        yield str(error)
        return
    if text.lstrip().startswith("{") and (streamed := _json_stream(text)) is not None:
        yield from (_checked(each) for each in streamed)
        return
    for part in _yaml_parts(text):
        yield _yaml_document(part)


def _json_stream(text: str) -> list[Any] | None:
    """Documents of JSON one after the other; None where it is YAML that begins with a brace."""
    decoder, found, position = json.JSONDecoder(), list[Any](), 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return None
        found.append(value)
    return found


def _yaml_parts(text: str) -> Iterator[str]:
    """Parts between separators, each of which is decoded by itself: one that is broken leaves the others alone."""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        rest = line[len(_SEPARATOR) :].strip() if line.startswith(_SEPARATOR) else None
        if rest is None or (rest and not rest.startswith("#")):
            lines.append(line)
        elif lines:
            yield "".join(lines)
            lines = []
    if lines:
        yield "".join(lines)


def _yaml_document(text: str) -> Document | str | None:
    try:
        values = read_yaml(text, 1)
    except (BadRequest, RecursionError) as error:
        reason = error.message if isinstance(error, BadRequest) else "nested too deep"
        return f"error converting YAML to JSON: yaml: {reason}"
    return _checked(values[0]) if values else None


def _checked(value: Any) -> Document | str | None:
    if value is None or isinstance(value, dict):
        return cast("Document | None", value)
    kind = "array" if isinstance(value, list) else "number" if isinstance(value, int | float) else "string"
    return f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
