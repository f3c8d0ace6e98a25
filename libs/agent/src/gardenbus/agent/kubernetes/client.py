"""Requests to one Kubernetes API server, on a session that many of them share.

Objects are documents, and their paths are the API's own: any kind can be had, also those of CustomResourceDefinitions.
"""

import contextlib
import ssl
from collections.abc import Mapping
from typing import Any, cast

import aiohttp
import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    GardenbusError,
    InvalidResource,
    NotFound,
    Unavailable,
)

APPLY = "application/apply-patch+yaml"
_JSON = "application/json"
_FIRST_ERROR = 400
_TOO_MANY, _FIRST_SERVER_ERROR = 429, 500
_BY_CODE: Mapping[int, type[GardenbusError]] = {
    400: BadRequest,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: BadRequest,
    409: Conflict,
    410: Conflict,
    415: BadRequest,
    422: InvalidResource,
}
_NOT_IN_SCHEMA = "field not declared in schema"
"""Text of an answer 500 that no repetition changes: an applied field that the kind does not have."""


class KubernetesClient:
    """One API server, reached by its URL with the certificates of `tls`."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, tls: ssl.SSLContext, *, timeout_seconds: float = 10
    ) -> None:
        self._session = session
        self._url = url
        self._tls = tls
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)

    async def get(self, path: str) -> Document | None:
        """An object; None without one. Raises what `request` does."""
        try:
            return await self.request("GET", path)
        except NotFound:
            return None

    async def items(self, path: str, **query: str) -> list[Document]:
        """All objects of a list, without apiVersion and kind; empty when the API has no such kind."""
        try:
            listed = await self.request("GET", path, query=query)
        except NotFound:
            return []
        return cast("list[Document]", listed.get("items") or [])

    async def apply(self, path: str, manifest: Document, *, manager: str, force: bool = True) -> Document:
        """Apply an object, of which this manager owns the fields given. Raises Conflict for others' without `force`."""
        query = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        return await self.request("PATCH", path, body=manifest, query=query, content_type=APPLY)

    async def delete(self, path: str, *, uid: str = "") -> bool:
        """Request the deletion of an object (of this uid), or of all in a collection; False when there is none."""
        body: Document = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            await self.request("DELETE", path, body=body)
        except NotFound:
            return False
        return True

    async def text(self, path: str) -> str:
        """The response to a GET as text, whatever its status. Raises Unavailable."""
        _, content = await self._send("GET", path, b"", {}, _JSON)
        return content.decode(errors="replace")

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Document | None = None,
        query: Mapping[str, str] = {},
        content_type: str = _JSON,
    ) -> Document:
        """Send a request and return the document of the response.

        Raises the error of its status: NotFound, Conflict (409, 410), Forbidden (401, 403), InvalidResource,
        BadRequest; Unavailable for 429, 5xx and without a response.
        """
        status, content = await self._send(
            method, path, b"" if body is None else msgspec.json.encode(body), query, content_type
        )
        if status >= _FIRST_ERROR:
            raise _error(status, content, f"{method} {path}")
        try:
            document: Any = msgspec.json.decode(content) if content else {}
        except msgspec.DecodeError as error:
            raise Unavailable(f"{method} {path}: the response is no JSON: {error}") from error
        return cast("Document", document) if isinstance(document, dict) else {}

    async def _send(
        self, method: str, path: str, body: bytes, query: Mapping[str, str], content_type: str
    ) -> tuple[int, bytes]:
        headers = {"Accept": _JSON, **({"Content-Type": content_type} if body else {})}
        try:
            async with self._session.request(
                method,
                self._url + path,
                data=body or None,
                params=dict(query),
                headers=headers,
                ssl=self._tls,
                timeout=self._timeout,
            ) as response:
                return response.status, await response.read()
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise Unavailable(f"{self._url} does not answer: {error or type(error).__name__}") from error


def client_tls(*, authority: str, certificate: str, key: str) -> ssl.SSLContext:
    """Certificates of a client, by their files. Raises BadRequest when they cannot be read, or do not fit."""
    try:
        context = ssl.create_default_context(cafile=authority)
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise BadRequest(f"the certificates of {certificate} cannot be used: {error}") from error
    return context


def _error(status: int, content: bytes, request: str) -> GardenbusError:
    message = content.decode(errors="replace").strip()
    with contextlib.suppress(msgspec.MsgspecError):
        message = str(msgspec.json.decode(content, type=dict[str, Any]).get("message") or message)
    text = f"{request}: {status} {' '.join(message.split())[:500]}"
    if status == _FIRST_SERVER_ERROR and _NOT_IN_SCHEMA in message:
        return InvalidResource(text)
    by_code = _BY_CODE.get(status)
    if by_code is None and status < _FIRST_SERVER_ERROR and status != _TOO_MANY:
        return BadRequest(text)
    return (by_code or Unavailable)(text)
