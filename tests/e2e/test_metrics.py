"""What every service of a living landscape tells at /metrics is what the reference page says, and no more."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.builders import a_cloudprofile, a_project, a_shoot
from tests.support.eventually import eventually
from tests.support.landscape import Landscape, a_landscape

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<type>\w+) \| (?P<labels>.*?) \| (?P<services>.*?) \|")
OF_SERVERS = {"nats", "redis"}

Document = dict[str, Any]


class Exposition(NamedTuple):
    type: str
    labels: frozenset[str]


def documented(service: str) -> Mapping[str, Exposition]:
    """The rows of the page that a service should tell."""
    found: dict[str, Exposition] = {}
    for line in PAGE.read_text().splitlines():
        row = ROW.match(line)
        if row and (row["services"] == "all" or service in row["services"].split(", ")):
            found[row["name"]] = Exposition(row["type"], frozenset(re.findall(r"`(\w+)`", row["labels"])))
    return found


def announced(exposition: str) -> Iterator[tuple[str, str, list[frozenset[str]]]]:
    """Name, type and each sample's labels."""
    for family in text_string_to_metric_families(exposition):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield name, family.type, [frozenset(sample.labels) - {"le"} for sample in family.samples]


def values(exposition: str, name: str) -> dict[tuple[str, ...], float]:
    """A metric's samples by the values of its labels, in the order of the labels' names."""
    return {
        tuple(value for _label, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
        if sample.name == name
    }


async def scraped(landscape: Landscape) -> dict[str, str]:
    """What each of our services tells, by its name."""
    services = [each for each in landscape.describe()["services"] if each["name"] not in OF_SERVERS]
    assert all(each["health_url"] for each in services), "a service is not up yet, or just starts again"
    async with aiohttp.ClientSession() as session:

        async def page(url: str) -> str:
            async with session.get(f"{url}/metrics") as response:
                assert response.headers["Content-Type"].startswith("text/plain; version=")
                return await response.text()

        texts = await asyncio.gather(*(page(each["health_url"].rstrip("/")) for each in services))
    return {each["name"]: text for each, text in zip(services, texts, strict=True)}


def a_landscape_file(directory: Path) -> Path:
    gardenlet = {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "resources": {"capacity": {"shoots": 2}},
        "backend": {"type": "local", "stepSeconds": 0.02},
        "seedConfig": {
            "metadata": {"name": "seed-a"},
            "spec": {"provider": {"type": "aws", "region": "eu-west-1", "zones": ["eu-west-1a"]}},
        },
    }
    shoots = [a_shoot(name) for name in ("one", "two", "three")]
    file = directory / "landscape.yaml"
    file.write_text("\n---\n".join(json.dumps(each) for each in [gardenlet, a_project(), a_cloudprofile(), *shoots]))
    return file


async def test_each_service_tells_what_the_page_says_and_the_numbers_are_those_of_the_landscape(tmp_path: Path):
    async with a_landscape(tmp_path / "state", "-f", str(a_landscape_file(tmp_path))) as landscape:

        async def settled() -> None:
            pages = await scraped(landscape)
            attempts = values(pages["scheduler"], "gardenbus_scheduler_attempts_total")
            assert attempts[("bound",)] == 2
            assert attempts[("unschedulable",)] >= 1
            assert values(pages["relay"], "gardenbus_store_objects")[("shoot",)] == 3
            assert values(pages["relay"], "gardenbus_store_pending_shoots")[()] == 1
            assert values(pages["lifecycle"], "gardenbus_seeds")[("aws", "eu-west-1", "ready")] == 1
            assert values(pages["lifecycle"], "gardenbus_seeds_shoots_used")[("aws", "eu-west-1")] == 2
            assert values(pages["lifecycle"], "gardenbus_seeds_shoots_allocatable")[("aws", "eu-west-1")] == 2
            assert values(pages["lifecycle"], "gardenbus_lifecycle_leases_late")[()] == 0
            done = values(pages["gardenlet"], "gardenbus_gardenlet_operation_seconds_count")
            assert done[("Create", "succeeded")] == 2
            consumers = values(pages["relay"], "gardenbus_consumer_pending_messages")
            assert consumers[("scheduling-default-scheduler", "QUEUES")] == 0
            assert values(pages["relay"], "gardenbus_outbox_entries")[()] == 0

        await eventually(settled, every=1)
        await landscape.client.publish("garden.apply", b"no: manifest: at: all")

        async def rejected() -> None:
            counted = values((await scraped(landscape))["apiserver"], "gardenbus_rejected_messages_total")
            assert sum(counted.values()) == 1

        await eventually(rejected, every=0.5)
        for service, text in (await scraped(landscape)).items():
            page = documented(service)
            assert page, f"{service} is not on the page"
            seen = {name: kind for name, kind, _labels in announced(text)}
            assert seen == {name: each.type for name, each in page.items()}, service
            for name, _kind, samples in announced(text):
                assert set(samples) <= {page[name].labels}, (service, name)
