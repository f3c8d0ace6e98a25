"""Health over HTTP of the one process that runs the gardenlets of several seeds."""

import json
import urllib.error
import urllib.request

import pytest

from tests.e2e.conftest import FRAIL
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.landscape import Landscape

pytestmark = pytest.mark.slow

SICK = "its Lease was not renewed for too long"


async def test_one_sick_seed_fails_its_own_health_and_leaves_the_process_healthy(hosting: Landscape):
    (process,) = [each for each in hosting.describe()["services"] if each["name"] == "gardenlet"]

    def fetch(path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(process["health_url"] + path, timeout=HANG_SECONDS) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    async def is_well() -> None:
        assert fetch(f"/readyz/{FRAIL}")[0] == 200

    await eventually(is_well, every=0.2)
    seeds = list(json.loads(fetch("/seeds")[1]))
    assert set(seeds) == {FRAIL, "earth-1", "seed-a"}
    switch = hosting.directory / "gardenlets" / FRAIL / "healthz-fails"
    switch.touch()

    async def is_sick() -> None:
        assert fetch(f"/healthz/{FRAIL}") == (500, f"{SICK}\n")

    await eventually(is_sick, every=0.2)
    assert fetch("/healthz") == (200, f"ok, except {FRAIL}: {SICK}\n")
    assert fetch("/readyz") == (200, '{"ok":true,"checks":{"heartbeats":"ok"}}')
    status, body = fetch(f"/readyz/{FRAIL}")
    assert (status, json.loads(body)) == (503, {"ok": False, "checks": {"heartbeats": SICK}})
    for seed in ("earth-1", "seed-a"):
        assert fetch(f"/healthz/{seed}") == (200, "ok\n")
        assert fetch(f"/readyz/{seed}")[0] == 200
    assert fetch("/healthz/unknown")[0] == 404
    switch.unlink()
    await eventually(is_well, every=0.2)
    assert fetch("/healthz") == (200, "ok\n")
    (same,) = [each for each in hosting.describe()["services"] if each["name"] == "gardenlet"]
    assert same["pid"] == process["pid"]
