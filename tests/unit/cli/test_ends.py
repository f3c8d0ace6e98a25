"""How the command ends and what it sent then, as a process: usage errors, servers out of reach, pipes, colours."""

import os
import pty
import socket
import socketserver
import subprocess
import threading
from pathlib import Path

import pytest

from tests.support.commands import INSTALLED, gardenbus_program
from tests.support.eventually import HANG_SECONDS
from tests.support.servers import start_nats


def gardenbus(*words: str, environ: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(gardenbus_program()), *words],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        env={**os.environ, **(environ or {})},
    )


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@pytest.mark.parametrize(
    ("words", "announced"),
    [
        (["get", "seeds", "--nope"], "No such option: --nope"),
        (["scale", "mss/x", "--replicas", "many"], "Invalid value for '--replicas'"),
        (["apply"], "Missing option"),
        (["gte"], "No such command 'gte'"),
    ],
)
def test_a_usage_error_is_one_line_off_a_terminal(words: list[str], announced: str):
    ended = gardenbus(*words)

    (line,) = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (2, "")
    assert line.startswith("gardenbus: ")
    assert announced in line
    assert "--help)" in line


def test_each_way_of_being_out_of_reach_has_its_sentence(closed_port: int):
    started = [
        gardenbus("get", "seeds", "--nats-url", url)
        for url in ("nats://no-such-host.invalid:4222", f"nats://127.0.0.1:{closed_port}", "http://127.0.0.1:1")
    ]

    assert [ended.returncode for ended in started] == [3, 3, 2]
    assert "the host no-such-host.invalid is not found" in started[0].stderr
    assert f"port {closed_port} refuses connections" in started[1].stderr
    assert "is no NATS address" in started[2].stderr
    assert all(len(ended.stderr.splitlines()) == 1 for ended in started)


@pytest.mark.parametrize(
    ("greeting", "response", "seen"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", b"", "it sent 'SSH-2.0-OpenSSH_9.2'"),
        (b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", "it sent 'HTTP/1.1 400 Bad Request'"),
        (b"", b"", "it closes the connection"),
    ],
)
def test_a_server_that_is_not_nats_is_called_that(greeting: bytes, response: bytes, seen: str):
    class Stranger(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(greeting)
            if response and self.request.recv(64):
                self.request.sendall(response)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        ended = gardenbus("get", "seeds", "--nats-url", f"nats://127.0.0.1:{port}")
        server.shutdown()

    expected = f"no NATS at nats://127.0.0.1:{port}: what listens on port {port} is no NATS server: {seen}"
    assert (ended.returncode, ended.stderr) == (3, f"gardenbus: {expected}\n")


def test_a_user_whom_the_server_does_not_let_in_is_told_so_at_once(tmp_path: Path):
    accounts = "accounts { A { jetstream: enabled, users: [{ user: ann, password: right }] } }\nno_auth_user: ann"
    server = start_nats(tmp_path / "nats", extra=accounts)
    silent = socket.create_server(("127.0.0.1", 0))
    try:
        ended = gardenbus("get", "seeds", "--nats-url", f"nats://ann:wrong@127.0.0.1:{server.port}")
        unheard = gardenbus("get", "seeds", "--nats-url", f"nats://127.0.0.1:{silent.getsockname()[1]}")
    finally:
        server.stop()
        silent.close()

    rejected = f"gardenbus: NATS at nats://127.0.0.1:{server.port} does not accept this user: user or password"
    assert ended.returncode == 2
    assert ended.stderr.startswith(rejected)
    assert unheard.returncode == 3
    assert "something listens there and does not respond" in unheard.stderr


def test_who_reads_no_further_ends_a_command_without_a_word(tmp_path: Path):
    lines = tmp_path / "lines"
    lines.write_text("what is this\n" * 100_000)

    ended = subprocess.run(
        [
            "bash",
            "-c",
            '"$@" < ' + str(lines) + ' | head -n 1 >/dev/null; echo "${PIPESTATUS[0]}"',
            "-",
            str(gardenbus_program()),
            "logs",
            "-",
        ],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=True,
    )

    assert (ended.stdout, ended.stderr) == ("0\n", "")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["replace", "--force", "--help"], 0),
        (["rollout", "--help"], 0),
        (["--version"], 0),
        (["completion", "bash"], 0),
        (["gte"], 2),
        (["get", "seeds", "--nope"], 2),
        (["get", "seeds", "--nats-url", "http://127.0.0.1:1"], 2),
    ],
)
def test_nobody_who_reads_what_it_prints_changes_how_it_ends(words: list[str], code: int):
    outside, inside = os.pipe()
    os.close(outside)
    try:
        assert (
            subprocess.run([str(gardenbus_program()), *words], stdout=inside, stderr=inside, check=False).returncode
            == code
        )
        ended = subprocess.run([str(gardenbus_program()), *words], stdout=inside, stderr=subprocess.PIPE, check=False)
        assert ended.returncode == code
        assert b"Traceback" not in ended.stderr
    finally:
        os.close(inside)


@pytest.mark.parametrize("words", [["--help"], ["get", "--help"], ["get", "seeds", "--nope"], ["top", "sideways"]])
def test_no_color_means_no_escapes_at_all_on_a_terminal(words: list[str]):
    assert b"\x1b" not in on_a_terminal(words, {"NO_COLOR": "1"})
    assert b"\x1b" in on_a_terminal(words, {})


def on_a_terminal(words: list[str], environ: dict[str, str]) -> bytes:
    """What a command writes to a terminal."""
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    outside, inside = pty.openpty()
    with subprocess.Popen(
        [INSTALLED, *words], stdin=inside, stdout=inside, stderr=inside, env={**kept, "TERM": "xterm", **environ}
    ) as process:
        os.close(inside)
        written = b""
        while True:
            try:
                part = os.read(outside, 65536)
            except OSError:
                break
            if not part:
                break
            written += part
        process.wait(HANG_SECONDS)
    os.close(outside)
    return written
