"""A dashboard as a process of its own, on a free port."""

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from pathlib import Path

from tests.support.eventually import HANG_SECONDS
from tests.support.servers import free_port

TIMEOUT_SECONDS = 120


@contextlib.contextmanager
def running_dashboard(
    nats_url: str, log: Path, *arguments: str, shoots: int = 0, ca: str = "", visits: bool = True
) -> Generator[str]:
    """Its URL, as soon as it knows the landscape and at least so many shoots; or listens, and nobody has visited it."""
    port = free_port()
    settings = {"GARDENBUS_NATS_URL": nats_url, "GARDENBUS_NATS_CA": ca, "GARDENBUS_DASHBOARD_PORT": str(port)}
    environ = os.environ | settings
    command = [sys.executable, "-m", "gardenbus.dashboard", *arguments]
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environ, stdout=file, stderr=file)
    try:
        url = f"http://127.0.0.1:{port}"
        if visits:
            _wait_for(url, log, shoots)
        else:
            _wait_for_start(log)
        yield url
    finally:
        process.terminate()
        process.wait(HANG_SECONDS)


def _wait_for_start(log: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while "dashboard.started" not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def _wait_for(url: str, log: Path, shoots: int) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/api/landscape", timeout=20) as response:
            summary = json.load(response)["summary"]
            if summary["synced"] and summary["shoots"] >= shoots:
                return
        time.sleep(0.2)
    raise AssertionError(log.read_text())
