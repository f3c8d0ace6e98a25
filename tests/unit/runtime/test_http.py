import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gardenbus.common.runtime.http_client import HttpClient, http_client
from gardenbus.common.runtime.http_server import LARGEST_REQUEST, HttpServer, Request, Response

pytestmark = pytest.mark.timeout(20)


class Told:
    """A server that says back what it was asked, and counts."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.server = HttpServer(self.answer)
        self.port = 0

    async def answer(self, request: Request) -> Response:
        self.asked.append(request)
        if request.path == "/broken":
            raise RuntimeError("no luck")
        if request.path == "/slow":
            await asyncio.sleep(0.1)
        return Response(f"{request.method} {request.path}\n".encode(), 404 if request.path == "/nothing" else 200)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def raw(self, said: bytes) -> bytes:
        """Everything that comes back for bytes, until the server hangs up."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(said)
        answer = await reader.read()
        writer.close()
        return answer


@pytest.fixture
async def told() -> AsyncIterator[Told]:
    told = Told()
    told.port = await told.server.start("127.0.0.1", 0)
    yield told
    await told.server.stop()


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with http_client(timeout_seconds=5) as client:
        yield client


async def test_a_path_is_decoded_and_comes_without_its_query(told: Told, http: HttpClient):
    answer = await http.ask(told.url("/a%20b?c=d"))

    assert (answer.status, answer.text) == (200, "GET /a b\n")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert (await http.ask(told.url("/nothing"))).status == 404
    assert (await http.ask(told.url("/it"), method="POST")).text == "POST /it\n"


async def test_a_connection_serves_many_questions_and_several_serve_them_at_once(told: Told, http: HttpClient):
    for _ in range(3):
        await http.ask(told.url("/"))
    assert len(told.server.connections) == 1

    answers = await asyncio.gather(*(http.ask(told.url("/slow")) for _ in range(5)))

    assert [answer.text for answer in answers] == ["GET /slow\n"] * 5
    assert len(told.server.connections) == 5


async def test_a_server_that_came_back_is_asked_anew(told: Told, http: HttpClient):
    await http.ask(told.url("/"))
    await told.server.stop()
    with pytest.raises(ConnectionRefusedError):
        await http.ask(told.url("/"))
    await told.server.start("127.0.0.1", told.port)

    assert (await http.ask(told.url("/"))).is_good


async def test_a_kept_connection_that_was_closed_meanwhile_is_no_failure(told: Told, http: HttpClient):
    await http.ask(told.url("/"))
    for connection in tuple(told.server.connections):
        connection.hang_up()

    assert (await http.ask(told.url("/"))).is_good


async def test_what_raises_is_answered_with_500_and_the_next_one_is_served(told: Told, http: HttpClient):
    assert (await http.ask(told.url("/broken"))).status == 500
    assert (await http.ask(told.url("/"))).is_good


async def test_an_answer_under_way_is_finished_at_the_stop(told: Told, http: HttpClient):
    asked = asyncio.create_task(http.ask(told.url("/slow")))
    while not told.asked:
        await asyncio.sleep(0.005)
    await told.server.stop()

    assert (await asked).text == "GET /slow\n"


async def test_questions_in_one_write_are_answered_in_order_and_old_clients_are_hung_up_on(told: Told):
    answer = await told.raw(
        b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b HTTP/1.1\r\nHost: a\r\n\r\nGET /c HTTP/1.0\r\n\r\n"
    )

    first, second, third = answer.split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert first.endswith(b"\r\n\r\nGET /slow\n")
    assert b"Content-Length: 8\r\n" in second
    assert second.endswith(b"\r\n\r\n")
    assert third.endswith(b"Connection: close\r\n\r\nGET /c\n")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"what?\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * (LARGEST_REQUEST + 1), b"413"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999\r\n\r\n" + b"x" * (LARGEST_REQUEST + 1), b"413"),
    ],
    ids=["no HTTP", "headers without end", "a body too large"],
)
async def test_what_is_no_request_is_refused(told: Told, said: bytes, status: bytes):
    assert (await told.raw(said)).startswith(b"HTTP/1.1 " + status)
    assert not told.asked


@asynccontextmanager
async def a_server_that_says(said: bytes) -> AsyncGenerator[str]:
    """Says these bytes to the first question and hangs up; answers its URL."""
    served = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()
        await writer.wait_closed()
        served.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    await served.wait()
    server.close()


@pytest.mark.parametrize("said", [b"", b"220 mail.example.com\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"])
async def test_who_does_not_answer_in_full_raises_oserror(http: HttpClient, said: bytes):
    async with a_server_that_says(said) as url:
        with pytest.raises(ConnectionError):
            await http.ask(url)


async def test_an_answer_in_chunks_is_put_together(http: HttpClient):
    chunks = b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    async with a_server_that_says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks) as url:
        assert (await http.ask(url)).text == "abc"


async def test_who_is_silent_is_waited_for_no_longer_than_was_said(told: Told):
    async with http_client(timeout_seconds=0.02) as http:
        with pytest.raises(TimeoutError):
            await http.ask(told.url("/slow"))
