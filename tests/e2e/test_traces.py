"""One request that came with a trace, followed through all services of a living landscape."""

import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.builders import a_cloudprofile, a_project, a_shoot
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.landscape import Landscape, a_landscape
from tests.support.spans import FROM_A_CLIENT, TRACE_ID

pytestmark = pytest.mark.slow

CLIENTS_SPAN = FROM_A_CLIENT.split("-")[2]
SERVICES = {"gardenbus-apiserver", "gardenbus-relay", "gardenbus-scheduler", "gardenbus-gardenlet"}

Document = dict[str, Any]


class Received(NamedTuple):
    """A span as the collector got it."""

    service: str
    name: str
    trace: str
    number: str
    parent: str


class Collector:
    """Takes spans by OTLP over HTTP, as an OpenTelemetry collector does."""

    def __init__(self) -> None:
        self.spans: list[Received] = []
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/x-protobuf"
        announced: Any = ExportTraceServiceRequest.FromString(await request.read())
        for resource in announced.resource_spans:
            names = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [
                    Received(
                        names["service.name"],
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                    )
                    for span in scope.spans
                ]
        return web.Response(content_type="application/x-protobuf")

    def of(self, trace: str) -> Mapping[str, Received]:
        """A trace's spans by their numbers."""
        return {span.number: span for span in self.spans if span.trace == trace}

    def way_to(self, span: Received) -> list[str]:
        """The names from the top of its trace down to a span."""
        existing = self.of(span.trace)
        names = [span.name]
        while span.parent in existing:
            span = existing[span.parent]
            names.insert(0, span.name)
        assert span.parent == CLIENTS_SPAN, f"{names} hangs on nothing"
        return names


@asynccontextmanager
async def a_collector() -> AsyncGenerator[Collector]:
    collector = Collector()
    application = web.Application()
    application.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield collector
    finally:
        await runner.cleanup()


def a_landscape_file(directory: Path) -> Path:
    gardenlet = {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "resources": {"capacity": {"shoots": 5}},
        "backend": {"type": "local", "stepSeconds": 0.02},
        "seedConfig": {
            "metadata": {"name": "seed-a"},
            "spec": {"provider": {"type": "aws", "region": "eu-west-1", "zones": ["eu-west-1a"]}},
        },
    }
    file = directory / "landscape.yaml"
    file.write_text("\n---\n".join(json.dumps(each) for each in [gardenlet, a_project(), a_cloudprofile()]))
    return file


async def built(landscape: Landscape, name: str) -> None:
    async def succeeded() -> None:
        status = (await landscape.query(f"get.shoot.garden-dev.{name}")).get("status", {})
        assert status.get("lastOperation", {}).get("state") == "Succeeded", status.get("lastOperation")

    await eventually(succeeded, every=0.3)


async def warmed_up(landscape: Landscape) -> None:
    """All take part by now: a shoot was built for which nobody asked with a trace."""
    await landscape.publish("garden.apply", [a_shoot("first")])
    await built(landscape, "first")


async def order(landscape: Landscape, shoot: Document, traceparent: str) -> None:
    response = await landscape.client.request(
        "garden.apply", json.dumps(shoot).encode(), timeout=HANG_SECONDS, headers={"traceparent": traceparent}
    )
    assert "seq" in json.loads(response.data)


async def test_one_trace_reaches_from_the_request_to_the_gardenlets_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "300")
        async with a_landscape(tmp_path / "state", "-f", str(a_landscape_file(tmp_path))) as landscape:
            await warmed_up(landscape)
            await order(landscape, a_shoot(), FROM_A_CLIENT)
            await built(landscape, "apollo")

            async def announced() -> None:
                spans = collector.of(TRACE_ID).values()
                assert {span.service for span in spans} >= SERVICES
                assert any(span.name == "gardenlet.create" for span in spans)

            await eventually(announced, every=0.3)
            logs = await landscape.command("logs", "--trace", TRACE_ID, "-o", "json")
            of_shoot = await landscape.command("logs", "--shoot", "garden-dev/apollo", "-o", "json")

    spans = collector.of(TRACE_ID).values()
    ways = {(span.name, tuple(collector.way_to(span))) for span in spans}
    assert {way[0] for _name, way in ways} == {"garden.apply"}
    steps = {way[:-1] for name, way in ways if name.startswith("step ")}
    (way_to_steps,) = steps
    placed = way_to_steps.index("scheduler.schedule")
    assert way_to_steps[:placed] in {
        ("garden.apply",),  # by the apiserver's hint
        ("garden.apply", "relay.announce", "queue.wait"),
    }
    assert way_to_steps[placed:] == (
        "scheduler.schedule",
        "scheduler.bind",
        "relay.announce",
        "gardenlet.claim",
        "apiserver.report",
        "relay.announce",
        "gardenlet.create",
    )
    assert sum(span.name.startswith("step ") for span in spans) > 10

    assert logs.code == 0, logs.stderr
    lines = [json.loads(line) for line in logs.stdout.splitlines()]
    assert {line["service"] for line in lines} == {"apiserver", "relay", "scheduler", "gardenlet"}
    assert {line["trace_id"] for line in lines} == {TRACE_ID}
    assert len(lines) <= len(of_shoot.stdout.splitlines())


async def test_where_traces_are_off_the_log_still_follows_a_request_that_came_with_one(tmp_path: Path) -> None:
    async with a_landscape(tmp_path / "state", "-f", str(a_landscape_file(tmp_path))) as landscape:
        await warmed_up(landscape)
        await order(landscape, a_shoot(), FROM_A_CLIENT)
        await built(landscape, "apollo")
        pretty = await landscape.command("logs", "--trace", TRACE_ID[:8])
        others = await landscape.command("logs", "--shoot", "garden-dev/first", "-o", "json")

    assert pretty.code == 0, pretty.stderr
    reported = re.findall(r"^\S+ (\w+)(?:-\d+)? +info +(\S+) ", pretty.stdout, re.MULTILINE)
    assert {("apiserver", "request.accepted"), ("relay", "change.announced"), ("scheduler", "shoot.scheduled")} <= set(
        reported
    )
    assert reported.count(("gardenlet", "reconcile.finished")) == 2
    assert "trace_id" not in others.stdout
