"""Speaks to a landscape over its bus, as anybody may: `garden.api.>` for answers, the streams for news."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec

from gardenbus.cli.addresses import without_user
from gardenbus.cli.contexts import Config, config_file, read_config, url_of
from gardenbus.cli.documents import as_list
from gardenbus.cli.output import RefusedByApi
from gardenbus.cli.selecting import chosen
from gardenbus.cli.supervisor.directory import DEFAULT_DIRECTORY, LandscapeDirectory, directory_option
from gardenbus.common.errors import BadRequest, Unavailable
from gardenbus.common.ports.bus import Bus
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import Header, Subjects

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 10.0
PAGE = 500
DEFAULT_PREFIX = "garden"


class Where(NamedTuple):
    """Which landscape is meant. `directory` is its state directory, where it was found by one."""

    nats_url: str
    prefix: str
    directory: Path | None = None


class Answer(msgspec.Struct, frozen=True):
    """One answer of the API."""

    ok: bool
    result: Any = None
    error: dict[str, Any] = {}
    warnings: tuple[str, ...] = ()
    outcome: str | list[str] = ""
    """What a write came to (`created`, `configured`, …); one for each of several documents."""


def find_landscape(
    directory: Path | None, nats_url: str | None, prefix: str | None, environ: Mapping[str, str] | None = None
) -> Where:
    """What the options say (`--context` is one), else the environment, the current context, or ./.gardenbus.

    Raises Unavailable, or BadRequest when the address given is none, or the context is not there.
    """
    environment = os.environ if environ is None else environ
    context = chosen.get()
    if context is not None and (directory is not None or nats_url):
        raise BadRequest("--context, or --dir, or --nats-url: one of them says which landscape")
    if context is not None:
        return _of_context(read_config(config_file(environment)), context, environment, prefix)
    prefix = prefix or environment.get("GARDENBUS_PREFIX")
    url = nats_url or (environment.get("GARDENBUS_NATS_URL") if directory is None else None)
    if url:
        check_nats_url(url)
        return Where(url, prefix or DEFAULT_PREFIX)
    if directory is None:
        config = read_config(config_file(environment))
        if config.current_context:
            return _of_context(config, config.current_context, environment, prefix)
    return _in_directory(directory or DEFAULT_DIRECTORY, prefix)


def _of_context(config: Config, name: str, environment: Mapping[str, str], prefix: str | None) -> Where:
    landscape = config.named(name)
    prefix = prefix or landscape.prefix or environment.get("GARDENBUS_PREFIX")
    if landscape.dir:
        return _in_directory(Path(landscape.dir).expanduser(), prefix)
    try:
        check_nats_url(landscape.nats_url)
        return Where(url_of(landscape), prefix or DEFAULT_PREFIX)
    except BadRequest as error:
        raise BadRequest(f"context {name}: {error}") from error


def _in_directory(directory: Path, prefix: str | None) -> Where:
    found = LandscapeDirectory(directory).read()
    if found is None or not found.nats_url or found.state == "stopped":
        hint = f"start one with `gardenbus up{directory_option(directory)}`, or name one with --nats-url or --context"
        raise Unavailable(f"no landscape in {directory}: {hint}")
    return Where(found.nats_url, prefix or found.prefix, directory)


def check_nats_url(url: str) -> None:
    """Raise BadRequest unless each of the addresses (separated by commas) can be one of a NATS server."""
    for address in url.split(","):
        try:
            parts = urlsplit(address if "://" in address else f"nats://{address}")
            is_address = parts.scheme in ("nats", "tls", "ws", "wss") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise BadRequest(f"{without_user(address)!r} is no NATS address: write nats://host:port")


class ApiClient:
    """Requests on `<prefix>.api.`, answered."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self.bus = bus
        self.subjects = subjects

    async def answer(
        self, tail: str, body: bytes = b"", *, timeout_seconds: float = ANSWER_SECONDS, is_dry_run: bool = False
    ) -> Answer:
        """Ask and return whatever is answered; with `is_dry_run` nothing is written. Raises Unavailable."""
        headers = {"headers": {Header.DRY_RUN: "true"}} if is_dry_run else {}
        answer = await self.bus.request(self.subjects.api(tail), body, timeout_seconds=timeout_seconds, **headers)
        try:
            return msgspec.json.decode(answer, type=Answer)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"{tail}: the answer cannot be read: {error}") from error

    async def ask(self, tail: str, value: object = None, *, timeout_seconds: float = ANSWER_SECONDS) -> Any:
        """Ask and return the result. Raises RefusedByApi, or Unavailable (also when the answer says so)."""
        body = b"" if value is None else msgspec.json.encode(value)
        answer = await self.answer(tail, body, timeout_seconds=timeout_seconds)
        if answer.ok:
            return answer.result
        raise refusal_of(answer.error)

    async def apply(self, documents: Sequence[Document], *, is_dry_run: bool = False) -> list[Answer]:
        """Apply manifests in one request; one answer for each, in order."""
        answer = await self.answer("apply", as_list(documents), timeout_seconds=60.0, is_dry_run=is_dry_run)
        return each_of(answer, len(documents))

    async def delete(self, documents: Sequence[Document], *, is_dry_run: bool = False) -> list[Answer]:
        """Delete what the manifests name; one answer for each, in order."""
        answer = await self.answer("delete", as_list(documents), timeout_seconds=60.0, is_dry_run=is_dry_run)
        return each_of(answer, len(documents))

    async def items(self, tail: str, query: Mapping[str, Any] | None = None) -> list[Document]:
        """A whole list, page by page."""
        found: list[Document] = []
        token: str | None = None
        while True:
            page = await self.ask(
                f"list.{tail}", {"limit": PAGE, **(query or {}), **({"continue": token} if token else {})}
            )
            found += page["items"]
            token = page.get("continue")
            if not token:
                return found

    async def census(self, *, timeout_seconds: float = ANSWER_SECONDS) -> dict[str, int]:
        """Counts of everything."""
        return await self.ask("census", timeout_seconds=timeout_seconds)


def refusal_of(error: dict[str, Any]) -> RefusedByApi | Unavailable:
    """The exception for an error in an answer."""
    if error.get("code") == Unavailable.code:
        return Unavailable(str(error.get("message")))
    return RefusedByApi(error)


def each_of(answer: Answer, count: int) -> list[Answer]:
    """One answer for each document, from the answer to all of them.

    A refusal as a whole (the message cannot be read) counts for each.
    """
    if count == 1:
        return [answer]
    results: Any = answer.result
    if not isinstance(results, list):
        return [answer] * count
    results = cast("list[Any]", results)
    if answer.ok:
        outcomes = answer.outcome if isinstance(answer.outcome, list) else [answer.outcome] * count
        answers = [Answer(ok=True, result=result, outcome=each) for result, each in zip(results, outcomes, strict=True)]
        return [msgspec.structs.replace(answers[0], warnings=answer.warnings), *answers[1:]]
    return [msgspec.convert(result, Answer) for result in results]


@contextlib.asynccontextmanager
async def connected(where: Where, *, patience_seconds: float = CONNECT_SECONDS) -> AsyncGenerator[ApiClient]:
    """A connection. Raises Unavailable when the bus is not reached in time."""
    with _without_web_sockets(where.nats_url):
        from gardenbus.common.adapters import jetstream  # noqa: PLC0415  what works offline need not pay for it

    quiet_logs()
    async with contextlib.AsyncExitStack() as stack:
        opening = jetstream.connect(where.nats_url, "gardenbus-cli", where.prefix, manages_streams=False)
        try:
            async with asyncio.timeout(patience_seconds):
                bus = await stack.enter_async_context(opening)
        except TimeoutError as error:
            raise Unavailable(
                f"no NATS at {without_user(where.nats_url)} within {patience_seconds:g} s: is it up?"
            ) from error
        yield ApiClient(bus, Subjects(where.prefix))


_WEB_SOCKETS = "aiohttp"


@contextlib.contextmanager
def _without_web_sockets(nats_url: str) -> Generator[None]:
    """Let the NATS client be imported without the library that it needs for ws:// addresses only: that is 0.2 s."""
    if "ws://" in nats_url or "wss://" in nats_url or _WEB_SOCKETS in sys.modules:
        yield
        return
    sys.modules[_WEB_SOCKETS] = cast("Any", None)  # an import of it fails, and the client does without
    try:
        yield
    finally:
        del sys.modules[_WEB_SOCKETS]


def quiet_logs() -> None:
    """Only errors, and to stderr: a command's stdout is its result."""
    import logging  # noqa: PLC0415  as below

    import structlog  # noqa: PLC0415  only who connects logs

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
