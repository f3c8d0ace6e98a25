"""Objects as clients send them, made ready for the apiserver: what stands in the path, and what the server owns."""

import base64
from typing import Any, cast

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import SERVER_METADATA, Document, encode, section
from gardenbus.common.api.field_ownership import OWNERS_ANNOTATION, managed_fields
from gardenbus.common.api.merge_patches import merge_patch_between, replacing_patch
from gardenbus.common.errors import BadRequest
from gardenbus.kubeapi.domain.request_info import RequestInfo
from gardenbus.kubeapi.domain.statuses import Rejected

_LONGEST_PREFIX = 58

_decode = json_decoder(Document)


def named_in(document: Document, info: RequestInfo) -> Document:
    """The object with its kind, namespace and name from the path. Raises BadRequest where the two differ."""
    resource = info.resource
    metadata = {name: value for name, value in section(document, "metadata").items() if value is not None}
    for field, wanted in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        given = document.get(field)
        if given not in (None, "", wanted):
            raise BadRequest(f"{field}: the {field} in the data ({given}) does not match the expected one ({wanted})")
    for field, wanted in (("namespace", info.namespace), ("name", info.name)):
        given = metadata.get(field)
        if given not in (None, "", wanted) and (wanted or field == "namespace"):
            raise BadRequest(f"metadata.{field}: {given} of the object does not match {wanted} on the URL")
        if wanted:
            metadata[field] = wanted
    metadata.pop("managedFields", None)
    found = {**document, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    return with_data(found) if resource.singular == "secret" else found


def with_data(secret: Document) -> Document:
    """A Secret, or a patch of one, whose `stringData` stands in `data`, as it is written and never read."""
    texts = section(secret, "stringData")
    if not texts:
        return secret
    encoded = {name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items() if text is not None}
    rest = {name: value for name, value in secret.items() if name != "stringData"}
    return {**rest, "data": {**section(secret, "data"), **encoded}}


def with_default_type(document: Document) -> Document:
    """A Secret with a type, Kubernetes' default where it states none; other objects as they are."""
    if document.get("kind") != "Secret" or document.get("type"):
        return document
    return {**document, "type": "Opaque"}


def with_generated_name(document: Document, end: str) -> tuple[Document, bool]:
    """The object with a name, and whether that was made of `generateName` and `end`. Raises Rejected without both."""
    metadata = section(document, "metadata")
    if metadata.get("name"):
        return document, False
    prefix = str(metadata.get("generateName") or "")
    if not prefix:
        message = "Required value: name or generateName is required"
        cause = {"reason": "FieldValueRequired", "message": message, "field": "metadata.name"}
        raise Rejected(422, "Invalid", f"metadata.name: {message}", [cause])
    return {**document, "metadata": {**metadata, "name": f"{prefix[:_LONGEST_PREFIX]}{end}"}}, True


def created(document: Document) -> Document:
    """A new object without what the server owns. Raises BadRequest for a version."""
    metadata = section(document, "metadata")
    if metadata.get("resourceVersion"):
        raise BadRequest("metadata.resourceVersion: must not be set on objects to be created")
    kept = {name: value for name, value in metadata.items() if name not in SERVER_METADATA}
    return {name: value for name, value in document.items() if name != "status"} | {"metadata": kept}


def replacement(present: Document, given: Document) -> Document:
    """The merge patch by which an update puts an object in the place of another; {} where they are the same.

    What the server owns and the status stay; finalizers and owners that are left out are removed, as Kubernetes does.
    """
    old, new = section(present, "metadata"), section(given, "metadata")
    owned = {name: old[name] for name in SERVER_METADATA if name in old}
    lists: dict[str, Any] = {name: new.get(name) or [] for name in ("finalizers", "ownerReferences") if name in old}
    kept = {name: value for name, value in new.items() if name not in SERVER_METADATA} | lists | owned
    given = with_default_type(given) if present.get("type") else given
    after = {name: value for name, value in given.items() if name != "status"} | {"metadata": kept}
    if "status" in present:
        after["status"] = present["status"]
    return replacing_patch(present, after)


def status_difference(present: Document, after: Document) -> Document:
    """The patch of the status between an object and what a client has made of it; {} where it is the same."""
    patch = merge_patch_between(section(present, "status"), section(after, "status"))
    return {"status": patch} if patch else {}


def difference(present: Document, after: Document) -> Document:
    """The merge patch between an object and what a patch has made of it, the status aside."""
    status = {"status": present["status"]} if "status" in present else {}
    wanted = {name: value for name, value in after.items() if name != "status"} | status
    return merge_patch_between(present, wanted)


def without_nulls(document: Document) -> Document:
    """An applied manifest without fields that are null, which state nothing."""
    return {
        name: without_nulls(cast("Document", value)) if isinstance(value, dict) else value
        for name, value in document.items()
        if value is not None
    }


def presented(body: bytes) -> bytes:
    """An object as clients see it: owners of fields in `metadata.managedFields`, in the place of the annotation."""
    if OWNERS_ANNOTATION.encode() not in body:
        return body
    document: Document = _decode(body)
    metadata = section(document, "metadata")
    annotations = section(metadata, "annotations")
    if OWNERS_ANNOTATION not in annotations:
        return body
    rest = {name: text for name, text in annotations.items() if name != OWNERS_ANNOTATION}
    fields = managed_fields(str(annotations[OWNERS_ANNOTATION]))
    shown = {name: value for name, value in metadata.items() if name != "annotations"}
    shown |= ({"annotations": rest} if rest else {}) | ({"managedFields": fields} if fields else {})
    return encode({**document, "metadata": shown})
