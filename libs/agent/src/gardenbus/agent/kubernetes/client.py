"""Requests to one Kubernetes API server, on a session that many of them share.

Objects are documents, and their paths are the API's own: any kind can be had, also those of CustomResourceDefinitions.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal, cast

import aiohttp
import msgspec

from gardenbus.agent.kubernetes.errors import (
    Expired,
    FieldConflict,
    Throttled,
    Unauthorized,
    Unreachable,
    UntrustedServer,
    conflict_message,
    field_conflicts,
    retry_after,
)
from gardenbus.common.api.decoding import decode_json, json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    GardenbusError,
    InvalidResource,
    NotFound,
    Unavailable,
)

APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
_JSON = "application/json"
_METADATA = "application/json;as={};g=meta.k8s.io;v=v1"
_FIRST_ERROR = 400
_CONFLICT, _TOO_MANY, _FIRST_SERVER_ERROR = 409, 429, 500
_PAGE = 500
_LONGEST_LINE = 1 << 25
"""Bytes of one event of a watch: an object has at most 1.5 MiB, as etcd takes it."""

_LARGEST_RESPONSE = 1 << 28
"""Bytes of a response: a page of large objects has less, and a server that sends more would fill the memory."""

_WATCH_GRACE_SECONDS = 15.0
_BY_CODE: Mapping[int, type[GardenbusError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: BadRequest,
    409: Conflict,
    410: Expired,
    415: BadRequest,
    422: InvalidResource,
}
_NOT_IN_SCHEMA = "field not declared in schema"
"""Text of a response 500 that no repetition changes: an applied field that the kind does not have."""
_NO_RESPONSE = (TimeoutError, asyncio.IncompleteReadError, aiohttp.ClientError, OSError, ValueError)

Propagation = Literal["Background", "Foreground", "Orphan"]
"""Fate of the objects that a deleted one owns: they go after it, before it, or stay."""

_decode = json_decoder()


class KubernetesClient:
    """One API server, reached by its URL with the certificates of `tls`, or with a token.

    `server_name` is the name in the server's certificate, where that is not the URL's.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        tls: ssl.SSLContext,
        *,
        timeout_seconds: float = 10,
        token: str = "",
        server_name: str | None = None,
    ) -> None:
        self._session = session
        self._url = url
        self._tls = tls
        self._timeout_seconds = timeout_seconds
        self._headers = {"Accept": _JSON, **({"Authorization": f"Bearer {token}"} if token else {})}
        self._token = token
        self._server_name = server_name

    def metadata_only(self) -> "KubernetesClient":
        """The same client whose lists and watches bring objects without anything but their metadata."""
        return _MetadataClient(
            self._session,
            self._url,
            self._tls,
            timeout_seconds=self._timeout_seconds,
            token=self._token,
            server_name=self._server_name,
        )

    @property
    def url(self) -> str:
        """The server's address."""
        return self._url

    async def get(self, path: str) -> Document | None:
        """An object; None without one. Raises what `request` does."""
        try:
            return await self.request("GET", path)
        except NotFound:
            return None

    async def items(self, path: str, **query: str) -> list[Document]:
        """All objects of a list, without apiVersion and kind; empty when the API has no such kind."""
        try:
            found, _ = await self.list_all(path, **query)
        except NotFound:
            return []
        return found

    async def list_all(self, path: str, **query: str) -> tuple[list[Document], str]:
        """All objects of a list, page by page, and the version to watch it from. Raises NotFound, Expired."""
        found: list[Document] = []
        continuation = ""
        while True:
            paging = {"limit": str(_PAGE), **({"continue": continuation} if continuation else {})}
            listed = await self.request("GET", path, query={**query, **paging}, accept=self._accept("List"))
            found += cast("list[Document]", listed.get("items") or [])
            metadata = cast("Document", listed.get("metadata") or {})
            continuation = str(metadata.get("continue") or "")
            if not continuation:
                return found, str(metadata.get("resourceVersion") or "")

    async def apply(
        self, path: str, manifest: Document, *, manager: str, force: bool = True, dry_run: bool = False
    ) -> Document:
        """Apply an object, of which this manager owns the fields given.

        Raises FieldConflict for fields of others without `force`, Conflict for another resourceVersion than given.
        """
        query = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        query |= {"dryRun": "All"} if dry_run else {}
        return await self.request("PATCH", path, body=manifest, query=query, content_type=APPLY)

    async def create(self, collection: str, manifest: Document, *, manager: str) -> Document:
        """Create an object. Raises AlreadyExists, and what `request` does."""
        return await self.request("POST", collection, body=manifest, query={"fieldManager": manager})

    async def replace(self, path: str, manifest: Document, *, manager: str) -> Document:
        """Replace an object by its manifest, whose resourceVersion it must have. Raises Conflict, NotFound."""
        return await self.request("PUT", path, body=manifest, query={"fieldManager": manager})

    async def merge_patch(self, path: str, patch: Document, *, manager: str) -> Document:
        """Patch an object by a JSON merge patch: null removes a field. Raises NotFound, and what `request` does."""
        query = {"fieldManager": manager}
        return await self.request("PATCH", path, body=patch, query=query, content_type=MERGE_PATCH)

    async def delete(
        self,
        path: str,
        *,
        uid: str = "",
        propagation: Propagation = "Background",
        **query: str,
    ) -> bool:
        """Request the deletion of an object (of this uid), or of all in a collection; False when there is none.

        `query` selects objects of a collection (`labelSelector`). Raises Conflict for another uid.
        """
        body: Document = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            await self.request("DELETE", path, body=body, query=query)
        except NotFound:
            return False
        return True

    async def text(self, path: str) -> str:
        """The response to a GET as text, whatever its status. Raises Unreachable."""
        _, _, content = await self._send("GET", path, b"", {}, _JSON)
        return content.decode(errors="replace")

    async def content(self, path: str, *, most_bytes: int, **query: str) -> tuple[int, bytes]:
        """Status and content of the response to a GET, whatever they are. Raises Unreachable, also for a longer one."""
        status, _, content = await self._send("GET", path, b"", query, _JSON, most_bytes=most_bytes)
        return status, content

    async def events(self, path: str, *, timeout_seconds: float, **query: str) -> AsyncGenerator[Document]:
        """Events of a watch, until the server ends it. Raises what `request` does."""
        parameters = {
            **query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(timeout_seconds)),
        }
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._timeout_seconds, sock_read=timeout_seconds + _WATCH_GRACE_SECONDS
        )
        try:
            headers = {**self._headers, "Accept": self._accept()}
            async with self._open("GET", path, b"", parameters, headers, timeout) as response:
                if response.status >= _FIRST_ERROR:
                    content = await self._content(response, path, _LONGEST_LINE)
                    raise _error(response.status, content, f"watch of {path}", response.headers.get("Retry-After"))
                async for line in _lines(response.content):
                    yield _document(line, f"watch of {path}")
        except _NO_RESPONSE as error:
            raise self._unreachable(error) from error

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Document | None = None,
        query: Mapping[str, str] = {},
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> Document:
        """Send a request and return the document of the response.

        Raises the error of its status: NotFound, Conflict (409; FieldConflict of an apply), Expired (410),
        Unauthorized (401), Forbidden (403), InvalidResource, BadRequest, Throttled (429), Unavailable (5xx);
        Unreachable without a response.
        """
        status, again, content = await self._send(
            method, path, b"" if body is None else msgspec.json.encode(body), query, content_type, accept
        )
        if status >= _FIRST_ERROR:
            raise _error(status, content, f"{method} {path}", again)
        return _document(content, f"{method} {path}") if content else {}

    async def _send(  # noqa: PLR0913 - the parts of a request
        self,
        method: str,
        path: str,
        body: bytes,
        query: Mapping[str, str],
        content_type: str,
        accept: str = _JSON,
        *,
        most_bytes: int = _LARGEST_RESPONSE,
    ) -> tuple[int, str | None, bytes]:
        """Status, Retry-After and content of a response. Raises Unreachable, also for a longer one."""
        headers = {**self._headers, "Accept": accept, **({"Content-Type": content_type} if body else {})}
        timeout = aiohttp.ClientTimeout(total=self._timeout_seconds)
        try:
            async with self._open(method, path, body, query, headers, timeout) as response:
                content = await self._content(response, path, most_bytes)
                return response.status, response.headers.get("Retry-After"), content
        except _NO_RESPONSE as error:
            raise self._unreachable(error) from error

    async def _content(self, response: Any, path: str, most_bytes: int) -> bytes:
        """The content of a response. Raises Unreachable for a longer one."""
        content = bytearray()
        async for chunk in response.content.iter_any():
            content += chunk
            if len(content) > most_bytes:
                raise Unreachable(f"{self._url}{path} sends more than {most_bytes} bytes")
        return bytes(content)

    def _accept(self, suffix: str = "") -> str:
        """Media types of what a list (`List`) or a watch brings."""
        del suffix
        return _JSON

    def _open(
        self,
        method: str,
        path: str,
        body: bytes,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
    ) -> Any:
        return self._session.request(
            method,
            self._url + path,
            data=body or None,
            params=dict(query),
            headers=dict(headers),
            ssl=self._tls,
            server_hostname=self._server_name,
            timeout=timeout,
            allow_redirects=False,
        )

    def _unreachable(self, error: Exception) -> Unreachable:
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            verified = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
            return UntrustedServer(f"{self._url} is not the server that is trusted: {verified}")
        reason = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error  # the error names objects
        return Unreachable(f"{self._url} does not respond: {str(reason) or type(error).__name__}")


class _MetadataClient(KubernetesClient):
    """A client that requests the metadata of objects, and takes whole objects from a server without that form."""

    def _accept(self, suffix: str = "") -> str:
        return f"{_METADATA.format(f'PartialObjectMetadata{suffix}')},{_JSON}"


def client_tls(*, authority: str, certificate: str, key: str) -> ssl.SSLContext:
    """Certificates of a client, by their files. Raises BadRequest when they cannot be read, or do not fit."""
    try:
        context = ssl.create_default_context(cafile=authority)
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise BadRequest(f"the certificates of {certificate} cannot be used: {error}") from error
    return context


def _error(status: int, content: bytes, request: str, again: str | None = None) -> GardenbusError:
    message, details = content.decode(errors="replace").strip(), dict[str, Any]()
    with contextlib.suppress(msgspec.MsgspecError):
        details = decode_json(content, dict[str, Any])
        message = str(details.get("message") or message)
    text = f"{request}: {status} {' '.join(message.split())[:500]}"
    if status == _FIRST_SERVER_ERROR and _NOT_IN_SCHEMA in message:
        return InvalidResource(text)
    if status == _TOO_MANY:
        return Throttled(text, retry_after(again))
    if status == _CONFLICT and (fields := field_conflicts(details)):
        return FieldConflict(f"{request}: {conflict_message(fields)}", fields)
    if status == _CONFLICT and details.get("reason") == "AlreadyExists":
        return AlreadyExists(text)
    by_code = _BY_CODE.get(status)
    if by_code is None and status < _FIRST_SERVER_ERROR:
        return BadRequest(text)
    return (by_code or Unavailable)(text)


def _document(content: bytes, request: str) -> Document:
    try:
        document = _decode(content)
    except msgspec.DecodeError as error:
        raise Unavailable(f"{request}: the response is no JSON: {error}") from error
    return cast("Document", document) if isinstance(document, dict) else {}


async def _lines(stream: aiohttp.StreamReader) -> AsyncGenerator[bytes]:
    """Lines of any length up to `_LONGEST_LINE`. Raises Unavailable for one that is cut off, or longer."""
    rest = bytearray()
    async for chunk in stream.iter_any():
        rest += chunk
        while (end := rest.find(b"\n")) >= 0:
            line = bytes(rest[:end])
            del rest[: end + 1]
            if line.strip():
                yield line
        if len(rest) > _LONGEST_LINE:
            raise Unavailable(f"an event of more than {_LONGEST_LINE >> 20} MiB")
    if rest.strip():
        raise Unavailable("the last event was cut off")
