"""The death of a seed, as an operator reads it from Events, pages and `doctor`: without a log."""

import asyncio
import json
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.landscape import Document, Landscape, a_landscape

pytestmark = pytest.mark.slow

DEAD, LIVING = "seed-a", "seed-b"
CAUSE = "Its credentials were revoked"
SHORT_PERIODS: Document = {
    "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1",
    "kind": "ControllerManagerConfiguration",
    "controllers": {"seed": {"monitorPeriod": "6s", "shootMonitorPeriod": "6s", "syncPeriod": "1s"}},
}


class Pages:
    """What the dashboard's pages read, in the session of the operator."""

    def __init__(self, link: str) -> None:
        self._url, _, token = link.partition("/login#")
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        self._open("/api/login", json.dumps({"token": token}).encode())

    async def read(self, path: str) -> Any:
        return await asyncio.to_thread(self._open, path)

    def _open(self, path: str, body: bytes | None = None) -> Any:
        headers = {"Content-Type": "application/json", "Origin": self._url}
        request = urllib.request.Request(self._url + path, body, headers)
        with self._opener.open(request, timeout=HANG_SECONDS) as response:
            return json.load(response)


async def reads(landscape: Landscape, *words: str, code: int = 0) -> Any:
    """What a command prints for programs."""
    ended = await landscape.command(*words, "-o", "json")
    assert ended.code == code, ended
    return json.loads(ended.stdout)


@pytest.mark.timeout(600)
async def test_a_seed_that_dies_tells_why_and_since_when_in_events_pages_and_doctor(tmp_path: Path):
    file = tmp_path / "landscape.yaml"
    gardenlets = [a_gardenlet_configuration(DEAD), a_gardenlet_configuration(LIVING)]
    home = a_shoot("apollo", spec={"seedName": DEAD})
    file.write_text(yaml.safe_dump_all([SHORT_PERIODS, *gardenlets, a_project(), a_cloudprofile(), home]))
    async with a_landscape(tmp_path / "state", "-f", str(file)) as landscape:

        async def reconciled() -> None:
            (shoot,) = await landscape.list("shoot")
            assert shoot["status"]["lastOperation"]["state"] == "Succeeded"

        await eventually(reconciled)
        pages = Pages((await landscape.command("dashboard")).stdout.strip())
        revoked = await landscape.command("certificate", "revoke", DEAD, "--reason", "drill")
        assert revoked.code == 0, revoked

        async def shown_by_events() -> None:
            seed = (await landscape.command("events", "seed", DEAD)).stdout
            assert "GardenletNotReady" in seed
            assert CAUSE in " ".join(seed.split())
            shoot = (await landscape.command("events", "shoot", "apollo", "-n", "garden-dev")).stdout
            assert "SeedNotReady" in shoot

        await eventually(shown_by_events, every=0.5)
        condition = next(
            each
            for each in (await reads(landscape, "get", "seed", DEAD))["status"]["conditions"]
            if each["type"] == "GardenletReady"
        )
        assert condition["status"] == "Unknown"
        assert CAUSE in condition["message"]

        async def shown_by_pages() -> None:
            rows = {row["name"]: row for row in (await pages.read("/api/seeds"))["items"]}
            assert (rows[DEAD]["ready"], rows[LIVING]["ready"]) == ("Unknown", "True")
            assert rows[DEAD]["lastHeartbeat"] == condition["lastHeartbeatTime"]
            page = await pages.read(f"/api/object/seed/_/{DEAD}")
            assert any(event["reason"] == "GardenletNotReady" and CAUSE in event["message"] for event in page["events"])

        async def shown_by_doctor() -> None:
            ended = await landscape.command("doctor", "-o", "json")
            findings = {each["check"]: each for each in json.loads(ended.stdout)["findings"]}
            found = findings["heartbeats"]
            assert (found["state"], found["found"].startswith(f"no heartbeat from {DEAD} (")) == ("failed", True), found
            assert CAUSE in found["found"]
            assert LIVING not in found["found"]
            assert f"events seed {DEAD}" in found["remedy"]

        await eventually(shown_by_pages, every=0.5)
        await eventually(shown_by_doctor, every=0.5)
