"""`gardenbus recovery`: what it shows, and what it sends."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.commands import options
from gardenbus.cli.main import app
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Bus

LASTING = {
    "id": "7",
    "cause": "it was restored from a backup",
    "beganAt": "2026-01-02T03:04:05Z",
    "leasePeriodPassed": False,
    "silent": ["earth-2"],
    "responses": {"earth-1": "queried", "earth-3": "ann"},
    "message": "the store went back",
}


class Landscape:
    """Responds with one recovery, and keeps what was requested."""

    def __init__(self, recovery: Any) -> None:
        self._recovery = recovery
        self.requests: list[tuple[str, Any]] = []

    async def request(self, subject: str, body: bytes, **_: Any) -> bytes:
        self.requests.append((subject, json.loads(body) if body else None))
        return json.dumps({"ok": True, "result": {"recovery": self._recovery}}).encode()

    @asynccontextmanager
    async def connected(self, *_: object) -> AsyncGenerator[ApiClient]:
        yield ApiClient(cast("Bus", self), Subjects())


def shown(monkeypatch: pytest.MonkeyPatch, landscape: Landscape, *arguments: str) -> str:
    monkeypatch.setattr(options, "connected", landscape.connected)
    result = CliRunner().invoke(app, ["recovery", *arguments, "--nats-url", "nats://nowhere:1"])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_recovery_is_shown_seed_by_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, Landscape(LASTING)).splitlines()
    assert lines == [
        "since 2026-01-02T03:04:05Z: it was restored from a backup",
        "earth-1: queried",
        "earth-3: without it, by ann",
        "earth-2: silent",
    ]


def test_an_operator_goes_on_without_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    landscape = Landscape({**LASTING, "silent": []})
    assert "one lease period has not passed yet" in shown(monkeypatch, landscape, "--without", "a", "--without", "b")
    assert landscape.requests == [("garden.api.proceed", {"without": ["a", "b"]})]


def test_without_a_recovery_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, Landscape(None)).startswith("no recovery")
