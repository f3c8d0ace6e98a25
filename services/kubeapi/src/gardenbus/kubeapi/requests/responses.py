"""Requests about resources and their responses, before these are encoded."""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.api.document import Document, encode
from gardenbus.kubeapi.access.logins import User
from gardenbus.kubeapi.domain.negotiation import Accepted
from gardenbus.kubeapi.domain.request_info import RequestInfo


class ObjectResponse(NamedTuple):
    """JSON, with its status and warnings."""

    body: bytes
    status: int = 200
    warnings: Sequence[str] = ()


class ApiRequest(NamedTuple):
    """A request about a resource, of a user who is logged in."""

    info: RequestInfo
    user: User
    accepted: Accepted
    body: bytes = b""
    content_type: str = ""


def object_response(document: Document, status: int = 200, warnings: Sequence[str] = ()) -> ObjectResponse:
    """The response with a document."""
    return ObjectResponse(encode(document), status, warnings)
