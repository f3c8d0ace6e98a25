"""A real Prometheus, configured as in the deployment, watches a landscape: targets, rules, the dashboard's queries."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import yaml

from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot
from tests.support.eventually import eventually
from tests.support.landscape import Landscape, a_landscape
from tests.support.promtool import ROOT, prometheus
from tests.support.servers import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(prometheus() is None, reason="there is no Prometheus here: .ci/prometheus brings it"),
]

OBSERVABILITY = ROOT / "deploy" / "compose" / "observability"
SERVERS = {"nats", "redis"}
SERVICES = {
    "relay",
    "apiserver",
    "scheduler",
    "lifecycle",
    "managedseedset",
    "autoscaler",
    "placement",
    "gardenlet",
    "memberagent",
    "dashboard",
}

WITHOUT_TROUBLE = {
    "Binds that the store refused",
    "Rejected by reason",
    "Put back with backoff",
    "Critical alerts",
    "What fires",
}
"""Panels that show something only where something goes wrong."""

WITHOUT_SETS = {
    "Replicas of each autoscaler",
    "Waiting shoots that a new seed would take",
    "Sets: wanted and ready",
    "Sets: actions",
    "Changes by autoscalers",
    "Controllers: looks by result",
    "Controllers: time of a look, 99 %",
}
"""Panels about ManagedSeedSets, SeedAutoscalers and the controllers that look after them: there are none here."""

WITHOUT_PLACEMENTS = {
    "Placements: cycles by outcome",
    "Placements: time of a cycle",
    "Bindings: written",
    "Works: written and applied",
    "Snapshots, statuses and evictions",
}
"""Panels about placements: there are member clusters here, and nothing is placed on them."""

ELSEWHERE = {"Fullest seeds", "Redis: memory"}
"""A setting that is off, and a limit that is not there."""

Document = dict[str, Any]


def a_landscape_file(directory: Path) -> Path:
    gardenlet = a_gardenlet_configuration(shoots=20)
    agent = {
        "apiVersion": "memberagent.config.gardenbus.io/v1alpha1",
        "kind": "MemberAgentConfiguration",
        "clusters": [{"metadata": {"name": "cluster-a"}}],
    }
    file = directory / "landscape.yaml"
    file.write_text("\n---\n".join(json.dumps(each) for each in [gardenlet, agent, a_project(), a_cloudprofile()]))
    return file


def configuration(landscape: Landscape) -> Document:
    """The deployment's, with addresses instead of DNS names, and a pace that a test can wait for."""
    content: Document = yaml.safe_load((OBSERVABILITY / "prometheus.yml").read_text())
    content["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    content["rule_files"] = [str(OBSERVABILITY / "rules.yml")]
    [job] = content["scrape_configs"]
    del job["dns_sd_configs"]
    job["static_configs"] = [
        {
            "targets": [urlsplit(str(service["health_url"])).netloc],
            "labels": {"__meta_dns_name": service["name"].replace("gardenlet", "gardenlet-earth")},
        }
        for service in landscape.describe()["services"]
        if service["name"] not in SERVERS
    ]
    return content


class Observer:
    """A running Prometheus."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def query(self, path: str, **parameters: str) -> Any:
        """The `data` of an answer of its HTTP API."""
        async with self._session.get(f"{self._url}/api/v1/{path}", params=parameters) as response:
            reply = await response.json()
        assert reply["status"] == "success", (parameters, reply)
        return reply["data"]

    async def rows(self, expression: str) -> list[Document]:
        """What an expression is now."""
        data = await self.query("query", query=expression.replace("$__rate_interval", "20s"))
        return data["result"]


@pytest.fixture
async def landscape(tmp_path: Path) -> AsyncIterator[Landscape]:
    async with a_landscape(tmp_path / "state", "-f", str(a_landscape_file(tmp_path))) as landscape:
        yield landscape


@pytest.fixture
async def observer(landscape: Landscape, tmp_path: Path) -> AsyncIterator[Observer]:
    tool = prometheus()
    assert tool is not None

    async def configured() -> Document:
        services = [each for each in landscape.describe()["services"] if each["name"] not in SERVERS]
        assert {str(each["name"]) for each in services} >= SERVICES - {"dashboard"}
        assert all(each["health_url"] for each in services), "a service is not up yet"
        return configuration(landscape)

    file, port = tmp_path / "prometheus.yml", free_port()
    file.write_text(yaml.safe_dump(await eventually(configured)))
    process = await asyncio.create_subprocess_exec(
        tool,
        f"--config.file={file}",
        f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    async with aiohttp.ClientSession() as session:
        observer = Observer(f"http://127.0.0.1:{port}", session)

        async def responding() -> None:
            try:
                await observer.query("query", query="1")
            except (aiohttp.ClientError, ValueError) as error:
                raise AssertionError(str(error)) from error

        await eventually(responding)
        yield observer
    process.terminate()
    await process.wait()
    shutil.rmtree(tmp_path / "tsdb", ignore_errors=True)


async def work(landscape: Landscape) -> None:
    """Order shoots little by little, one of which fits nowhere, and delete one; ask the API now and then."""
    await landscape.query("apply", a_shoot("nowhere", spec={"region": "mars-1"}))
    for number in range(30):
        await landscape.query("apply", a_shoot(f"shoot-{number % 15}"))
        if number >= 15:
            await landscape.query(f"delete.shoot.garden-dev.shoot-{number % 15}")
        await asyncio.sleep(0.5)


async def test_targets_rules_and_dashboard_work_on_what_a_landscape_tells(landscape: Landscape, observer: Observer):
    working = asyncio.create_task(work(landscape))
    try:

        async def every_service_is_up() -> None:
            up = {row["metric"]["service"]: row["value"][1] for row in await observer.rows("up")}
            assert set(up) >= SERVICES - {"dashboard"}
            assert set(up.values()) == {"1"}

        await eventually(every_service_is_up)
        panels = json.loads((OBSERVABILITY / "grafana/dashboards/gardenbus.json").read_text())["panels"]
        quiet = WITHOUT_TROUBLE | WITHOUT_SETS | WITHOUT_PLACEMENTS | ELSEWHERE

        async def every_panel_shows_something() -> None:
            shown = [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", ())]
            silent = [each for each in shown if each[0] not in quiet and not await observer.rows(each[1])]
            assert not silent

        await eventually(every_panel_shows_something, every=1)
        groups = (await observer.query("rules"))["groups"]
        assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}
        alerts = (await observer.query("alerts"))["alerts"]
        assert not [each for each in alerts if each["labels"]["severity"] == "critical"]
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
