"""Encodes responses: JSON or YAML, compressed where they are long and the client takes it."""

import asyncio
import gzip

import yaml
from aiohttp import web

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, encode
from gardenbus.common.errors import GardenbusError
from gardenbus.kubeapi.domain.negotiation import JSON, YAML, Accepted
from gardenbus.kubeapi.domain.statuses import retry_seconds
from gardenbus.kubeapi.requests.responses import ObjectResponse

COMPRESSED_FROM = 128 * 1024
"""Bytes from which a response is compressed."""

_decode = json_decoder()
_CLOSING = frozenset({408, 413})
"""Codes after which what the client still sends is not read."""


async def encoded(request: web.Request, found: ObjectResponse, accepted: Accepted) -> web.Response:
    """The HTTP response of an object's."""
    body = found.body
    if accepted.media_type == YAML:
        body = yaml.safe_dump(_decode(body), sort_keys=False, allow_unicode=True).encode()
    headers = {"Content-Type": accepted.content_type, "Vary": "Accept", "Cache-Control": "no-cache, private"}
    if len(body) >= COMPRESSED_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        body = await asyncio.to_thread(gzip.compress, body, 1)
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept, Accept-Encoding"}
    response = web.Response(status=found.status, body=body, headers=headers)
    for warning in found.warnings:
        response.headers.add("Warning", f'299 - "{_quoted(warning)}"')
    return response


def _quoted(text: str) -> str:
    shown = "".join(letter if letter.isprintable() else " " for letter in text)[:1000]
    return shown.replace("\\", "\\\\").replace('"', '\\"').encode("ascii", "replace").decode()


def rejection(error: GardenbusError, status: Document) -> web.Response:
    """The response of an error: its Status, as JSON."""
    headers = {"Content-Type": JSON, "Cache-Control": "no-cache, private"}
    if (seconds := retry_seconds(error)) is not None:
        headers["Retry-After"] = str(seconds)
    if error.code in _CLOSING:
        headers["Connection"] = "close"
    return web.Response(status=error.code, body=encode(status), headers=headers)
