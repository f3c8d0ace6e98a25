"""API client of a landscape: requests on `garden.api.>`, and its streams."""

import asyncio
import contextlib
import importlib.util
import sys
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.client.reachability import check_reachable
from gardenbus.cli.client.repeating import first_response
from gardenbus.cli.client.targets import LandscapeTarget, credentials_of
from gardenbus.cli.manifests.files import as_list
from gardenbus.common.adapters.addresses import without_user
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.keys import Header, Subjects
from gardenbus.common.errors import BadRequest, CredentialsRejected, Forbidden, ServerUntrusted, Unavailable
from gardenbus.common.ports.bus import Bus

OPERATORS_ALONE = "that takes the operator's own credentials (nats_user and nats_password of landscape.json)"

CONNECT_SECONDS = 3.0
RESPONSE_SECONDS = 10.0
PAGE = 500
_REPEATABLE = frozenset({"apply", "get", "list", "names"})


class ApiResponse(msgspec.Struct, frozen=True):
    """One response of the API."""

    ok: bool
    result: Any = None
    error: dict[str, Any] = {}
    warnings: tuple[str, ...] = ()
    outcome: str | list[str] = ""
    """Outcome of a write (`created`, `configured`, …); one for each of several documents."""
    admission: Any = ()
    """Effects of each admission plug-in, where they were requested."""


class ApiClient:
    """Client for requests on `<prefix>.api.`."""

    def __init__(
        self, bus: Bus, subjects: Subjects, validation: FieldValidation | None = None, *, user: str = "", name: str = ""
    ) -> None:
        self._bus = bus
        self.subjects = subjects
        self._validation = validation
        self.user = user
        """Requester, of those who come in from outside; "" for the services' operator, and where all are alike."""
        self._name = name or user
        """By which requests are sent: also the operator's, whom `created-by` and the audit log name."""

    @property
    def bus(self) -> Bus:
        """The bus, for those who may follow its streams. Raises Forbidden for others."""
        if self.user:
            raise Forbidden(f"{self.user} may not read streams and queues: {OPERATORS_ALONE}")
        return self._bus

    def validating(self, validation: FieldValidation) -> "ApiClient":
        """The same, whose requests are validated otherwise than strictly."""
        chosen = None if validation is FieldValidation.STRICT else validation
        return ApiClient(self._bus, self.subjects, chosen, user=self.user, name=self._name)

    async def request(
        self,
        tail: str,
        body: bytes = b"",
        *,
        timeout_seconds: float = RESPONSE_SECONDS,
        is_dry_run: bool = False,
        is_explained: bool = False,
        condition: str = "",
    ) -> ApiResponse:
        """Send a request and return its response; with `is_dry_run` nothing is written. Raises Unavailable.

        With `is_explained` nothing either, and the response says what each admission plug-in did. Reads, and manifests
        that state no version, are sent again where no response comes: the first may have been carried out.

        `condition`: `<kind>.<ns>.<name>=<resourceVersion>`, without which nothing is written either (the response has
        the code 409); version 0 is absence.
        """
        given = {
            Header.DRY_RUN: "explain" if is_explained else "true" if is_dry_run else "",
            Header.CONDITION: condition,
            Header.VALIDATE: self._validation or "",
        }
        headers = {name: value for name, value in given.items() if value}
        subject = self.subjects.as_user(self._name, f"api.{tail}") if self._name else self.subjects.api(tail)

        async def send(seconds: float) -> bytes:
            return await self._bus.request(subject, body, headers=headers, timeout_seconds=seconds)

        is_repeatable = not condition and tail.partition(".")[0] in _REPEATABLE and b'"resourceVersion"' not in body
        response = await (first_response(send, timeout_seconds) if is_repeatable else send(timeout_seconds))
        try:
            return decode_json(response, ApiResponse)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"{tail}: the response cannot be read: {error}") from error

    async def call(self, tail: str, value: object = None, *, timeout_seconds: float = RESPONSE_SECONDS) -> Any:
        """Send a request and return the result. Raises ApiError, or Unavailable (also when the response says so)."""
        body = b"" if value is None else msgspec.json.encode(value)
        response = await self.request(tail, body, timeout_seconds=timeout_seconds)
        if response.ok:
            return response.result
        raise api_error(response.error)

    async def apply(self, documents: Sequence[Document], *, is_dry_run: bool = False) -> list[ApiResponse]:
        """Apply manifests in one request; one response for each, in order."""
        response = await self.request("apply", as_list(documents), timeout_seconds=60.0, is_dry_run=is_dry_run)
        return split_response(response, len(documents))

    async def explain_apply(self, documents: Sequence[Document]) -> list[ApiResponse]:
        """Explain what applying manifests in one request would do; one response for each, in order."""
        response = await self.request("apply", as_list(documents), timeout_seconds=60.0, is_explained=True)
        return split_response(response, len(documents))

    async def delete(self, documents: Sequence[Document], *, is_dry_run: bool = False) -> list[ApiResponse]:
        """Delete the objects that the manifests name; one response for each, in order."""
        response = await self.request("delete", as_list(documents), timeout_seconds=60.0, is_dry_run=is_dry_run)
        return split_response(response, len(documents))

    async def items(self, tail: str, query: Mapping[str, Any] | None = None) -> list[Document]:
        """A whole list, page by page."""
        return [document async for page in self.pages(tail, query) for document in page]

    async def items_if_readable(self, tail: str, query: Mapping[str, Any] | None = None) -> list[Document] | None:
        """A whole list; None for those who may not read it."""
        try:
            return await self.items(tail, query)
        except ApiError as error:
            if is_forbidden(error.error):
                return None
            raise

    async def pages(
        self, tail: str, query: Mapping[str, Any] | None = None, *, size: int = PAGE
    ) -> AsyncGenerator[list[Document]]:
        """A whole list, in requests of so many objects."""
        token: str | None = None
        while True:
            page = await self.call(
                f"list.{tail}", {"limit": size, **(query or {}), **({"continue": token} if token else {})}
            )
            yield page["items"]
            token = page.get("continue")
            if not token:
                return

    async def seed_names(self) -> Sequence[str]:
        """Names of all seeds."""
        return [str(section(each, "metadata").get("name")) for each in await self.items("seed")]

    async def usage(self) -> Mapping[str, int]:
        """Shoots that count on each seed, as the store has them; seeds without shoots are left out."""
        return (await self.call("usage"))["seeds"]

    async def census(self, *, timeout_seconds: float = RESPONSE_SECONDS) -> dict[str, int]:
        """Counts of everything."""
        return await self.call("census", timeout_seconds=timeout_seconds)


def is_forbidden(error: Mapping[str, Any]) -> bool:
    """True for the error of a response to somebody who may not do something."""
    return error.get("code") == Forbidden.code


def api_error(error: dict[str, Any]) -> ApiError | Unavailable:
    """The exception for an error in a response; of a failure with the way to its lines in the log."""
    if error.get("code") == Unavailable.code:
        message, reconcile_id = str(error.get("message")), str(error.get("reconcileId") or "")
        if reconcile_id and reconcile_id not in message:
            message += f"; its log: gardenbus logs --grep {reconcile_id}"
        return Unavailable(message)
    return ApiError(error)


def split_response(response: ApiResponse, count: int) -> list[ApiResponse]:
    """Split the response to a request with several documents into one for each.

    A rejection as a whole (the message cannot be read) counts for each.
    """
    if count == 1:
        return [response]
    results: Any = response.result
    if not isinstance(results, list):
        return [response] * count
    results = cast("list[Any]", results)
    if response.ok:
        outcomes = response.outcome if isinstance(response.outcome, list) else [response.outcome] * count
        admissions = response.admission or [()] * count
        responses = [
            ApiResponse(ok=True, result=result, outcome=outcome, admission=admission)
            for result, outcome, admission in zip(results, outcomes, admissions, strict=True)
        ]
        return [msgspec.structs.replace(responses[0], warnings=response.warnings), *responses[1:]]
    return [msgspec.convert(result, ApiResponse) for result in results]


@contextlib.asynccontextmanager
async def connected(
    where: LandscapeTarget,
    *,
    timeout_seconds: float = CONNECT_SECONDS,
    waits: bool = False,
    makes: tuple[str, ...] = (),
) -> AsyncGenerator[ApiClient]:
    """A connection. Raises Unavailable when the bus is not reached in time.

    Where nothing can be reached it raises at once, unless it `waits` for a server to come up. Streams that it `makes`
    (REQUESTS) are created, or brought up to date. Raises CredentialsRejected where it is reached and does not let this
    user in, or is not trusted itself.
    """
    with _without_extras(where.nats_url):
        from gardenbus.common.adapters.nats import jetstream  # noqa: PLC0415  what works offline need not pay for it
        from gardenbus.common.adapters.nats.connection import OutOfReach  # noqa: PLC0415
        from gardenbus.common.adapters.nats.streams import StreamSettings  # noqa: PLC0415

    quiet_logs()
    credentials = credentials_of(where)
    async with contextlib.AsyncExitStack() as stack:
        opening = jetstream.connect(
            where.nats_url,
            "gardenbus-cli",
            where.prefix,
            credentials=credentials,
            streams=StreamSettings(only=makes),
            manages_streams=bool(makes),
            fails_unauthorized=True,
            fails_unreachable=not waits,
        )
        async with _explaining(where, timeout_seconds):
            try:
                bus = await stack.enter_async_context(opening)
            except OutOfReach:
                await check_reachable(where.nats_url)
                raise
        name = credentials.principal.user if credentials.principal is not None else ""
        yield ApiClient(bus, Subjects(where.prefix), user=name if credentials.is_outsider else "", name=name)


@contextlib.asynccontextmanager
async def _explaining(where: LandscapeTarget, timeout_seconds: float) -> AsyncGenerator[None]:
    """Report where, and why, one is not let in, or without a response. Raises Unavailable, CredentialsRejected."""
    try:
        async with asyncio.timeout(timeout_seconds):
            yield
    except TimeoutError as error:
        await check_reachable(where.nats_url)
        raise Unavailable(
            f"no NATS at {without_user(where.nats_url)} within {timeout_seconds:g} s: something listens there and "
            "does not respond"
        ) from error
    except ServerUntrusted:
        raise
    except CredentialsRejected as error:
        from gardenbus.cli.client.rejections import reason_for  # noqa: PLC0415  only after a rejection

        rejected = f"NATS at {without_user(where.nats_url)} does not accept this user"
        raise CredentialsRejected(f"{rejected}: {reason_for(where, datetime.now(UTC))}") from error


_OF_WEB_SOCKETS = "aiohttp"
_OF_TRACEBACKS = "rich.traceback"
"""Coloured ones, of a log that shows no more than errors."""


@contextlib.contextmanager
def _without_extras(nats_url: str) -> Generator[None]:
    """Import the NATS client without libraries that it, or the log, does without: they are more than half of it."""
    needed = {_OF_WEB_SOCKETS} if "ws://" in nats_url or "wss://" in nats_url else set[str]()
    if needed and importlib.util.find_spec(_OF_WEB_SOCKETS) is None:
        raise BadRequest(f"{without_user(nats_url)}: web sockets need aiohttp: pip install 'gardenbus[ws]'")
    left_out = {_OF_WEB_SOCKETS, _OF_TRACEBACKS} - needed - sys.modules.keys()
    for name in left_out:
        sys.modules[name] = cast("Any", None)  # an import of it fails
    try:
        yield
    finally:
        for name in left_out:
            del sys.modules[name]


def quiet_logs() -> None:
    """Only errors, and to stderr: a command's stdout is its result."""
    import logging  # noqa: PLC0415  as below

    import structlog  # noqa: PLC0415  only who connects logs

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        processors=[structlog.stdlib.add_log_level, structlog.dev.ConsoleRenderer(colors=False)],
    )
