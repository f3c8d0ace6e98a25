"""What a supervisor says of a server that could not write, by what the server says of its health afterwards."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.embedded import processes
from gardenbus.embedded.full_disk import DiskRoom
from gardenbus.embedded.process_specs import ProcessSpec
from gardenbus.embedded.processes import ManagedProcess
from tests.support.eventually import eventually
from tests.support.servers import free_port

SERVER = """
import http.server, pathlib, sys

class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        error = pathlib.Path(sys.argv[2]).read_bytes() if self.path == "/healthz" else b"{}"
        self.send_response(503 if error and self.path == "/healthz" else 200)
        self.end_headers()
        self.wfile.write(error)

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Health).serve_forever()
"""


class StandIn:
    """A process with the health pages of nats-server, under a supervisor."""

    def __init__(self, directory: Path) -> None:
        self.reported: list[str] = []
        self._error = directory / "error"
        place = LandscapeDirectory(directory / "landscape")
        place.prepare()
        port = free_port()
        self.report("")
        command = [sys.executable, "-c", SERVER, str(port), str(self._error)]
        spec = ProcessSpec("nats", "nats", command, {}, kind="nats", port=port, store=directory)
        self.process = ManagedProcess(spec, place, notify=self.reported.append, changed=lambda: None)

    def report(self, error: str) -> None:
        """Have the server report this trouble with its health; "" is none."""
        self._error.write_text(json.dumps({"status": "unavailable", "error": error}) if error else "")

    async def until(self, trouble: str, note: str) -> None:
        async def seen() -> None:
            assert (self.process.trouble, self.process.entry().note or "") == (trouble, note)

        await eventually(seen)


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StandIn]:
    """One whose disk is full."""

    def no_room(_: Path) -> DiskRoom:
        return DiskRoom(0, 10**9)

    monkeypatch.setattr(processes, "room_of", no_room)
    server = StandIn(tmp_path)
    server.process.start()
    yield server
    await server.process.stop()


async def test_another_trouble_of_a_server_that_could_not_write_is_not_called_a_full_disk(
    server: StandIn, tmp_path: Path
) -> None:
    full = f"cannot write: the disk of {tmp_path} is full; make room"
    server.report("write error")
    await server.until("write error", full)
    server.report("JetStream has no meta leader")
    await server.until("JetStream has no meta leader", "")
    assert server.reported == [f"nats {full}"]

    server.report("write error")
    await server.until("write error", full)
    assert server.reported == [f"nats {full}"]

    server.report("")
    await server.until("", "")
    assert server.reported == [f"nats {full}", "nats can write again"]
