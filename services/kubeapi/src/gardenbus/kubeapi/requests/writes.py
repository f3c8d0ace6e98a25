"""Writes: each is one or several requests to the apiserver as the user, on the version that it was decided on."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.field_ownership import (
    OTHER_WRITES,
    OWNERS_ANNOTATION,
    owners_of,
    states_owners,
    updated,
    with_owners,
)
from gardenbus.common.api.field_validation import FieldValidation, parse_field_validation
from gardenbus.common.api.identity import signing_requests
from gardenbus.common.api.identity.principals import PRINCIPAL_PREFIXES
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.merge_patches import merge_patched
from gardenbus.common.errors import AlreadyExists, BadRequest, Conflict, GardenbusError, NotFound
from gardenbus.common.side_thread import beside_loop
from gardenbus.kubeapi.api_client import ApiResult, ImpersonatingClient, WriteOptions
from gardenbus.kubeapi.domain import manifests, statuses
from gardenbus.kubeapi.domain.acting_users import ActingUser
from gardenbus.kubeapi.domain.bodies import UnsupportedMediaType, read_body, read_json
from gardenbus.kubeapi.domain.delete_options import DeleteRequestOptions, delete_options, is_dry_run
from gardenbus.kubeapi.domain.patches import apply
from gardenbus.kubeapi.domain.patches.json import json_patched
from gardenbus.kubeapi.domain.patches.strategic import merged_strategically
from gardenbus.kubeapi.domain.statuses import Rejected, invalid_option
from gardenbus.kubeapi.requests.reads import Reads, key_of
from gardenbus.kubeapi.requests.responses import ApiRequest, ObjectResponse, object_response

_decode = json_decoder(Document)

MOST_ATTEMPTS = 8
"""Attempts of a change that states no version, while others change the object."""

DELETED_TOGETHER = 4
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED = 5
"""Letters of a generated name, none of which makes a word, and their number."""
_CREATED = 201
_CONFLICT, _NOT_FOUND = 409, 404

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

LONGEST_MANAGER = 128
"""Characters of a manager's name. Source: `apimachinery/pkg/apis/meta/v1/validation`."""

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

_VALIDATIONS = ("Ignore", "Strict", "Warn")
_OPTIONS: Mapping[str, str] = {
    "create": "CreateOptions",
    "update": "UpdateOptions",
    "patch": "PatchOptions",
    "delete": "DeleteOptions",
    "deletecollection": "DeleteOptions",
}
"""Kubernetes' kind of the options of a verb."""

PatchMechanism = Callable[[Document], Document]
"""Returns the object that a patch results in."""


class _AlreadyExists(Rejected):
    """An object of the name is there."""


class Writes:
    """Handles writes."""

    def __init__(self, api: ImpersonatingClient, reads: Reads, now: Callable[[], datetime]) -> None:
        self._api = api
        self._reads = reads
        self._now = now

    async def create(self, request: ApiRequest) -> ObjectResponse:
        """Create an object. Raises AlreadyExists, and what the apiserver rejects it with."""
        given = manifests.created(manifests.named_in(read_body(request.body, request.content_type), request.info))
        for attempt in range(MOST_ATTEMPTS):
            document, is_generated = manifests.with_generated_name(given, _generated_end())
            try:
                result = await self._create(request, document)
            except _AlreadyExists:
                if not is_generated or attempt == MOST_ATTEMPTS - 1:
                    raise
            else:
                return ObjectResponse(result.body, _CREATED, result.warnings)
        raise AssertionError

    async def _create(self, request: ApiRequest, document: Document) -> ApiResult:
        key = ObjectKey(request.info.resource.singular, request.info.namespace, section(document, "metadata")["name"])
        verb, options = "apply", _options(request)._replace(condition=(key, 0))
        if key.kind == signing_requests.SINGULAR and request.user.name.startswith(PRINCIPAL_PREFIXES):
            verb, options = "csr.create", options._replace(condition=None)  # the same again is no other one
        try:
            return await self._api.request(request.user.acting, verb, manifests.with_default_type(document), options)
        except Rejected as error:
            error.named = key.name
            is_there = error.reason == AlreadyExists.reason  # which who may not read it is told, too
            if error.code == _CONFLICT and (is_there or await self._present(request.user.acting, key) is not None):
                about = f'{request.info.resource.qualified} "{key.name}" already exists'
                exists = _AlreadyExists(_CONFLICT, AlreadyExists.reason, about)
                exists.named = key.name
                raise exists from error
            raise

    async def update(self, request: ApiRequest) -> ObjectResponse:
        """Put an object in the place of what is stored. Raises NotFound, Conflict, and what it is rejected with."""
        given = manifests.named_in(read_body(request.body, request.content_type), request.info)
        replacing = manifests.status_difference if _is_of_status(request) else manifests.replacement
        return await self._change(request, given, lambda present: replacing(present, given))

    async def patch(self, request: ApiRequest) -> ObjectResponse:
        """Patch an object. Raises UnsupportedMediaType, NotFound, Conflict, and what it is rejected with."""
        media_type = media_type_of(request)
        if media_type == APPLY_PATCH:
            return await self._apply(request)
        if media_type == JSON_PATCH:
            operations = read_json(request.body)
            return await self._change(
                request, {}, lambda present: _difference(request, present, json_patched(present, operations))
            )
        if media_type not in (MERGE_PATCH, STRATEGIC_PATCH):
            supported = f"{JSON_PATCH}, {MERGE_PATCH}, {STRATEGIC_PATCH}, {APPLY_PATCH}"
            raise UnsupportedMediaType(f"{media_type[:80]!r} is no patch: there are {supported}")
        patch = _mapping(read_json(request.body))
        if request.info.resource.singular == "secret":
            patch = manifests.with_data(patch)
        own = _body_of(patch)
        if media_type == MERGE_PATCH:  # which is what the apiserver takes
            sent = _own_part(request, own)
            return await self._change(request, patch, lambda _: sent)
        return await self._merge(request, own, patch)

    async def _apply(self, request: ApiRequest) -> ObjectResponse:
        """Apply a manifest as a manager of fields; the object is created where it is not there."""
        applier = self._applier(request)
        body = read_body(request.body, APPLY_PATCH)
        for field in ("apiVersion", "kind"):
            if not body.get(field):
                raise BadRequest(f"{field}: is needed in an applied manifest")
        if section(body, "metadata").get("managedFields") is not None:
            raise BadRequest("metadata.managedFields: must be nil")
        given = manifests.named_in(body, request.info)
        own = manifests.without_nulls(_body_of(given))
        if _is_of_status(request):
            return await self._merge(request, own, given)
        for _ in range(MOST_ATTEMPTS):
            if await self._present(request.user.acting, key_of(request)) is None:
                try:
                    result = await self._create(request, apply.created(manifests.created(own), applier))
                except _AlreadyExists:
                    continue
                return ObjectResponse(result.body, _CREATED, result.warnings)
            break
        return await self._change(
            request,
            given,
            lambda present: _stating_owners(present, apply.applied(present, own, applier)),
        )

    def _applier(self, request: ApiRequest) -> apply.Applier:
        """The manager of an apply. Raises Rejected."""
        manager = request.info.query.get("fieldManager", "")
        if not manager:
            message = "Required value: is required for apply patch"
            raise invalid_option("PatchOptions", "fieldManager", "FieldValueRequired", message)
        if not manager.isprintable():
            message = "Invalid value: should only contain printable characters"
            raise invalid_option("PatchOptions", "fieldManager", "FieldValueInvalid", message)
        is_forced = request.info.query.get("force", "") in ("true", "1")
        time = f"{self._now():%Y-%m-%dT%H:%M:%SZ}"
        return apply.Applier(manager, request.info.resource.api_version, is_forced, time)

    async def _merge(self, request: ApiRequest, own: Document, given: Document) -> ObjectResponse:
        """Merge an object's fields strategically over what is stored."""
        return await self._change(
            request, given, lambda present: _difference(request, present, merged_strategically(present, own))
        )

    async def _change(self, request: ApiRequest, given: Document, patch_of: PatchMechanism) -> ObjectResponse:
        """Change an object on the version that it states, or on any, until nobody else has changed it meanwhile."""
        key, user = key_of(request), request.user.acting
        verb = "status" if _is_of_status(request) else "patch"
        metadata = section(given, "metadata")
        wanted, uid = str(metadata.get("resourceVersion") or ""), str(metadata.get("uid") or "")
        for attempt in range(MOST_ATTEMPTS):
            body = (await self._api.request(user, f"get.{key.tail}")).body
            present = _decode(body)
            stored = section(present, "metadata")
            if (wanted and wanted != stored.get("resourceVersion")) or (uid and uid != stored.get("uid")):
                raise Conflict(MODIFIED)
            size = len(body) + len(request.body)
            patch = await beside_loop(size, partial(_patch_of, request, present, patch_of))
            if not patch:
                return ObjectResponse(body)
            options = _options(request)._replace(condition=(key, int(stored["resourceVersion"])))
            try:
                result = await self._api.request(user, f"{verb}.{key.tail}", patch, options)
            except Rejected as error:
                if error.code != _CONFLICT:
                    raise
                if wanted or attempt == MOST_ATTEMPTS - 1:
                    raise Conflict(MODIFIED) from error
            else:
                return ObjectResponse(result.body, warnings=result.warnings)
        raise AssertionError

    async def delete(self, request: ApiRequest) -> ObjectResponse:
        """Delete an object. Raises NotFound, Conflict, InvalidResource, and what it is rejected with."""
        options = self._delete_options(request)
        return await self._delete(request, key_of(request), options)

    async def delete_collection(self, request: ApiRequest) -> ObjectResponse:
        """Delete what a list selects, some at a time; stops at the first error but NotFound."""
        options = self._delete_options(request)
        listed = _decode((await self._reads.list(request._replace(accepted=request.accepted._replace(form="")))).body)
        objects: list[Document] = listed["items"]
        for first in range(0, len(objects), DELETED_TOGETHER):
            together = objects[first : first + DELETED_TOGETHER]
            await asyncio.gather(*(self._delete_listed(request, each, options) for each in together))
        return object_response(listed)

    async def _delete_listed(self, request: ApiRequest, document: Document, options: DeleteRequestOptions) -> None:
        metadata = section(document, "metadata")
        key = ObjectKey(request.info.resource.singular, str(metadata.get("namespace") or ""), str(metadata["name"]))
        try:
            await self._delete(request, key, options)
        except GardenbusError as error:
            if error.code != _NOT_FOUND:
                raise

    @staticmethod
    def _delete_options(request: ApiRequest) -> DeleteRequestOptions:
        body = read_body(request.body, request.content_type) if request.body else {}
        return delete_options(body, request.info.query)

    async def _delete(self, request: ApiRequest, key: ObjectKey, options: DeleteRequestOptions) -> ObjectResponse:
        user, resource = request.user.acting, request.info.resource
        stored = section(await self._must_be_present(user, key), "metadata")
        uid, version = str(stored.get("uid") or ""), str(stored.get("resourceVersion") or "")
        if options.uid not in ("", uid) or options.version not in ("", version):
            raise Conflict(f"the UID or the version in the precondition is not that of the object: {uid}, {version}")
        condition = (key, int(version)) if options.uid or options.version else None
        write = WriteOptions(condition, options.is_dry_run)
        result = await self._api.request(user, f"delete.{key.tail}", options=write)
        left = _decode(result.body)
        if left.get("deleted") is True or options.is_dry_run or "metadata" not in left:
            return object_response(statuses.success(resource, key.name, uid), warnings=result.warnings)
        return ObjectResponse(result.body, warnings=result.warnings)

    async def _present(self, user: ActingUser, key: ObjectKey) -> Document | None:
        try:
            return _decode((await self._api.request(user, f"get.{key.tail}")).body)
        except Rejected as error:
            if error.code == _NOT_FOUND:
                return None
            raise

    async def _must_be_present(self, user: ActingUser, key: ObjectKey) -> Document:
        present = await self._present(user, key)
        if present is None:
            raise NotFound(f"{key} not found")
        return present


def _generated_end() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(_GENERATED))


def _options(request: ApiRequest) -> WriteOptions:
    """The options of a write. Raises Rejected."""
    query, kind = request.info.query, _OPTIONS[request.info.verb]
    text = query.get("fieldValidation", "")
    if text not in ("", *_VALIDATIONS):
        message = f'Unsupported value: "{text[:40]}": supported values: "", "Ignore", "Strict", "Warn"'
        raise invalid_option(kind, "fieldValidation", "FieldValueNotSupported", message)
    if len(query.get("fieldManager", "")) > LONGEST_MANAGER:
        message = f"Too long: may not be more than {LONGEST_MANAGER} bytes"
        raise invalid_option(kind, "fieldManager", "FieldValueTooLong", message)
    if "force" in query and not _is_apply(request):
        raise invalid_option(kind, "force", "FieldValueForbidden", "may not be specified for non-apply patch")
    validation = parse_field_validation(text, name="fieldValidation") if text else FieldValidation.WARN
    return WriteOptions(is_dry_run=is_dry_run(query.get("dryRun", ""), kind), validation=validation)


def _is_apply(request: ApiRequest) -> bool:
    return request.info.verb == "patch" and media_type_of(request) == APPLY_PATCH


def media_type_of(request: ApiRequest) -> str:
    """The media type of a body, without parameters."""
    return request.content_type.partition(";")[0].strip().lower()


def _patch_of(request: ApiRequest, present: Document, patch_of: PatchMechanism) -> Document:
    return _owned(request, present, patch_of(present))


def _owned(request: ApiRequest, present: Document, patch: Document) -> Document:
    """A patch that states the owners of fields after it, where the object has any: whoever changes a field owns it."""
    owners = owners_of(present)
    if not patch or not owners or _is_of_status(request) or states_owners(patch):
        return patch
    after = updated(present, merge_patched(present, patch), request.info.query.get("fieldManager") or OTHER_WRITES)
    if not states_owners(after):  # clients do not see it, and so leave it out
        after = with_owners(after, owners)
    return _stating_owners(present, after)


def _stating_owners(present: Document, after: Document) -> Document:
    """The patch that makes one object of the other, with its owners even where they stay; {} where all stays."""
    patch = manifests.difference(present, after)
    stated = {OWNERS_ANNOTATION: section(after, "metadata", "annotations")[OWNERS_ANNOTATION]}
    return merge_patched(patch, {"metadata": {"annotations": stated}}) if patch else patch


def _is_of_status(request: ApiRequest) -> bool:
    return request.info.subresource is not None and request.info.subresource.name == "status"


def _difference(request: ApiRequest, present: Document, after: Document) -> Document:
    """Patch of the part that a request changes: the status where it is about that, else all but the status."""
    return (manifests.status_difference if _is_of_status(request) else manifests.difference)(present, after)


def _own_part(request: ApiRequest, patch: Document) -> Document:
    """The part of a merge patch that a request changes."""
    is_of_status = _is_of_status(request)
    return {name: patch[name] for name in patch if (name == "status") is is_of_status}


def _body_of(patch: Document) -> Document:
    """A patch without the version and uid that it depends on."""
    if "metadata" not in patch:
        return patch
    kept = {
        name: value
        for name, value in section(patch, "metadata").items()
        if name not in ("resourceVersion", "uid", "managedFields", "creationTimestamp")
    }
    return {**patch, "metadata": kept}


def _mapping(value: Any) -> Document:
    if not isinstance(value, dict):
        raise BadRequest("the patch is no object")
    return value  # pyright: ignore[reportUnknownVariableType]
