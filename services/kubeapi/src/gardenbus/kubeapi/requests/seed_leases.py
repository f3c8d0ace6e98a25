"""Leases of seeds: heartbeats, which live on the bus and are not stored; each is written by the gardenlet of its seed.

A write is published on the sequence that it was decided on, so that of two at the same time one is told of the other.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, cast
from uuid import uuid4

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.identity.principals import SEED_USER_PREFIX
from gardenbus.common.api.keys import LEASE_NAMESPACE, Subjects
from gardenbus.common.api.merge_patches import merge_patched
from gardenbus.common.errors import Conflict, NoResponse, NotFound, Unavailable
from gardenbus.common.ports.bus import Bus, Message, StreamMessage
from gardenbus.kubeapi.domain.bodies import UnsupportedMediaType, read_body, read_json
from gardenbus.kubeapi.domain.heartbeats import NOTHING, HeartbeatMetadata, metadata_of, stamped
from gardenbus.kubeapi.domain.manifests import named_in
from gardenbus.kubeapi.domain.patches.json import json_patched
from gardenbus.kubeapi.domain.patches.strategic import merged_strategically
from gardenbus.kubeapi.domain.statuses import Rejected, UnknownOutcome
from gardenbus.kubeapi.requests.reads import key_of
from gardenbus.kubeapi.requests.responses import ApiRequest, ObjectResponse, object_response
from gardenbus.kubeapi.requests.writes import (
    JSON_PATCH,
    MERGE_PATCH,
    MODIFIED,
    MOST_ATTEMPTS,
    STRATEGIC_PATCH,
    media_type_of,
)

_CREATED = 201
_STREAM = "LEASES"
_decode = json_decoder(Document)


class SeedLeases:
    """Handles writes of Leases of seeds."""

    def __init__(self, bus: Bus, subjects: Subjects, now: Callable[[], datetime]) -> None:
        self._bus = bus
        self._subjects = subjects
        self._now = now

    @staticmethod
    def concern(request: ApiRequest) -> bool:
        """True for a write of a seed's Lease."""
        info = request.info
        is_of_seed = info.resource.singular == "lease" and info.namespace == LEASE_NAMESPACE
        return is_of_seed and info.verb in ("create", "update", "patch")

    async def write(self, request: ApiRequest) -> ObjectResponse:
        """Publish a heartbeat. Raises Rejected, NotFound, Conflict, Unavailable, UnknownOutcome."""
        given = (
            named_in(read_body(request.body, request.content_type), request.info)
            if request.info.verb != "patch"
            else {}
        )
        name = request.info.name or metadata_of(given).name
        self._check_is_own(request, name)
        stated = metadata_of(given).resource_version
        attempt = 0
        while True:
            attempt += 1
            last = await self._last(name)
            present = _decode(last.body) if last is not None and last.marker is None else None
            lease = self._changed(request, present, given)
            response = object_response(lease, _CREATED if request.info.verb == "create" else 200)
            if request.info.query.get("dryRun"):
                return response
            message = Message(self._subjects.lease(name), encode(lease))
            try:
                await self._bus.publish(message, expected_subject_sequence=last.sequence if last is not None else 0)
            except Conflict:
                if stated or attempt == MOST_ATTEMPTS:
                    raise Conflict(MODIFIED) from None
            except NoResponse as error:
                raise UnknownOutcome(f"{error.message}; whether it was stored is unknown") from error
            else:
                return response

    async def _last(self, seed: str) -> StreamMessage | None:
        stream = self._subjects.stream(_STREAM)
        try:
            return await self._bus.last(stream, self._subjects.lease(seed))
        except NotFound as error:
            raise Unavailable(f"the stream {stream} is not there: it is made anew") from error

    def _changed(self, request: ApiRequest, present: Document | None, given: Document) -> Document:
        """The Lease as it is published."""
        if request.info.verb == "create":
            if present is not None:
                about = f'{request.info.resource.qualified} "{metadata_of(given).name}" already exists'
                raise Rejected(409, "AlreadyExists", about)
            return self._stamped(given, NOTHING)
        if present is None:
            raise NotFound(f"{key_of(request)} not found")
        after = given if request.info.verb == "update" else _patched(request, present)
        before = metadata_of(present)
        if metadata_of(after).resource_version not in ("", before.resource_version):
            raise Conflict(MODIFIED)
        return self._stamped(after, before)

    def _stamped(self, lease: Document, before: HeartbeatMetadata) -> Document:
        return stamped(lease, before, now=self._now(), uid=str(uuid4()))

    @staticmethod
    def _check_is_own(request: ApiRequest, name: str) -> None:
        """Raise Rejected for everybody but the gardenlet of the seed."""
        user, info = request.user, request.info
        if user.name == f"{SEED_USER_PREFIX}{name}" and not user.impersonator:
            return
        raise Rejected(
            403,
            "Forbidden",
            f'{info.resource.qualified} "{name}" is forbidden: User "{user.name}" cannot {info.verb} resource '
            f'"{info.resource.plural}" in API group "{info.resource.group}" in the namespace "{info.namespace}": '
            "the Lease of a seed is renewed by its gardenlet alone",
        )


def _patched(request: ApiRequest, present: Document) -> Document:
    media_type = media_type_of(request)
    patch: Any = read_json(request.body)
    if media_type == JSON_PATCH:
        return named_in(json_patched(present, patch), request.info)
    if media_type not in (MERGE_PATCH, STRATEGIC_PATCH) or not isinstance(patch, dict):
        supported = f"{JSON_PATCH}, {MERGE_PATCH}, {STRATEGIC_PATCH}"
        raise UnsupportedMediaType(f"{media_type[:80]!r} is no patch of a heartbeat: there are {supported}")
    merged = merge_patched if media_type == MERGE_PATCH else merged_strategically
    return named_in(merged(present, cast("Document", patch)), request.info)
