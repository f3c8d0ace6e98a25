"""The program that tests use in place of `gardenbus` acts like it, and leaves no process."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.commands import INSTALLED, gardenbus_program
from tests.support.eventually import HANG_SECONDS

SERVER = Path(__file__).parents[2] / "support" / "command_server.py"


@pytest.mark.parametrize(
    "words",
    [["--version"], ["gte"], ["get", "--help"], ["get", "seeds", "--nats-url", "nats://127.0.0.1:1"], ["logs", "-"]],
)
def test_a_command_prints_and_ends_as_the_installed_one(words: list[str], tmp_path: Path) -> None:
    ends = [
        subprocess.run(
            [program, *words],
            input="no line of a log: ä\n",
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "100"},
            timeout=HANG_SECONDS,
            check=False,
        )
        for program in (INSTALLED, gardenbus_program())
    ]
    assert len({(ended.returncode, ended.stdout, ended.stderr) for ended in ends}) == 1


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_signal_reaches_the_command_which_closes_its_connection(number: signal.Signals, code: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(HANG_SECONDS)
        address = f"nats://127.0.0.1:{silent.getsockname()[1]}"
        command = [gardenbus_program(), "get", "seeds", "--nats-url", address]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as launcher:
            connection, _ = silent.accept()
            with connection:
                connection.settimeout(HANG_SECONDS)
                launcher.send_signal(number)
                assert launcher.wait(HANG_SECONDS) == code
                assert connection.recv(1) == b""


def test_the_server_ends_with_its_parent_and_removes_its_directory(tmp_path: Path) -> None:
    directory = tmp_path / "commands"
    directory.mkdir()
    program = (
        "import os, subprocess, sys\n"
        f"server = subprocess.Popen([sys.executable, {str(SERVER)!r}, sys.argv[1], str(os.getpid())])\n"
        "print(server.pid, flush=True)\n"
        "os.read(0, 1)\n"
        "os._exit(0)\n"
    )
    command = [sys.executable, "-c", program, str(directory / "socket")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        server = os.pidfd_open(int(parent.stdout.readline()))
        deadline = time.monotonic() + HANG_SECONDS
        while not (directory / "socket").exists():
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.02)
    os.close(server)
    while directory.exists():
        assert time.monotonic() < deadline, "the server has not removed its directory"
        time.sleep(0.02)
