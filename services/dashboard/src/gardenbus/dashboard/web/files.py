"""Static files of the page from the package, read once, with an ETag of their content."""

import hashlib
import mimetypes
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

STATIC = Path(__file__).parent.parent / "static"
INDEX = "index.html"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}


class StaticFile(NamedTuple):
    """One file with its headers."""

    body: bytes
    media_type: str
    tag: str


class StaticFiles:
    """Serves `/` and `/static/…`."""

    def __init__(self, directory: Path = STATIC) -> None:
        self._directory = directory
        self._files: dict[str, StaticFile] | None = None

    def named(self, path: str) -> Response:
        """The response with a file that there is."""
        file = self._loaded()[path]
        return Response(file.body, media_type=file.media_type, headers={"Cache-Control": "no-store"})

    async def __call__(self, request: Request) -> Response:
        """Respond with a file, or 304 when the browser has it."""
        path = str(request.path_params.get("path") or INDEX)
        file = self._loaded().get(path)
        if file is None:
            return PlainTextResponse("not found\n", status_code=404)
        headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.body, media_type=file.media_type, headers=headers)

    def _loaded(self) -> dict[str, StaticFile]:
        if self._files is None:
            found = sorted(path for path in self._directory.rglob("*") if path.is_file())
            self._files = {path.relative_to(self._directory).as_posix(): _read(path) for path in found}
        return self._files


def _read(path: Path) -> StaticFile:
    body = path.read_bytes()
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return StaticFile(body, media_type, f'"{hashlib.sha256(body).hexdigest()[:20]}"')
