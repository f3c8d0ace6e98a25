"""Gardener's own scheduler places shoots of a landscape, beside one of ours under another name."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
import yaml

from gardenbus.common.api.document import section
from tests.support.eventually import eventually
from tests.support.kubernetes_api import Document, KubernetesApi, a_kubernetes_api, client_program
from tests.support.servers import free_port

pytestmark = pytest.mark.slow
WITHIN = 120.0
OURS, GARDENERS = "gardenbus", "default-scheduler"
LEASE = "gardener-scheduler"
REASONS = {
    "garden-dev/icarus": "3 zones",
    "garden-dev/midas": "domain",
    "garden-dev/orpheus": "access restrictions",
    "garden-dev/sisyphus": "planet=pluto",
    "garden-dev/tantalus": "taints",
}
"""What Gardener says of shoots that fit nowhere, in part."""


LEFT_OUT = ("garden/", "garden-orchard/")
"""Shoots that become seeds while the landscape grows, and those that wait for these seeds."""


def a_configuration(name: str) -> Document:
    shoot = {"candidateDeterminationStrategy": "MinimalDistance", **({"schedulerName": name} if name == OURS else {})}
    return {
        "apiVersion": "scheduler.config.gardener.cloud/v1alpha1",
        "kind": "SchedulerConfiguration",
        "schedulers": {"shoot": shoot},
    }


@pytest.fixture
def landscape(tmp_path: Path) -> Generator[KubernetesApi]:
    """The example, whose shoots of the default scheduler wait."""
    file = tmp_path / "scheduler.yaml"
    file.write_text(yaml.safe_dump(a_configuration(OURS)))
    none = ("--replicas", "scheduler=0")
    yield from a_kubernetes_api(tmp_path / "api", "-f", str(file), *none, "--replicas", f"scheduler/{OURS}=1")


@contextlib.asynccontextmanager
async def a_scheduler(landscape: KubernetesApi) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Gardener's scheduler, which elects its leader by a Lease."""
    lease = {"resourceLock": "leases", "resourceNamespace": "garden", "resourceName": LEASE}
    times = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
    ports = {name: {"bindAddress": "127.0.0.1", "port": free_port()} for name in ("healthProbes", "metrics")}
    configuration = {
        **a_configuration(GARDENERS),
        "clientConnection": {"kubeconfig": str(landscape.kubeconfig), "qps": 100, "burst": 130},
        "leaderElection": {"leaderElect": True, **lease, **times},
        "logLevel": "info",
        "logFormat": "json",
        "server": ports,
    }
    file = landscape.place / f"gardener-scheduler-{ports['metrics']['port']}.yaml"
    file.write_text(yaml.safe_dump(configuration))
    async with landscape.running(client_program("gardener-scheduler"), f"--config={file}") as process:
        yield process


@pytest.fixture
async def scheduler(landscape: KubernetesApi) -> AsyncGenerator[KubernetesApi]:
    """The landscape, with Gardener's scheduler."""
    async with a_scheduler(landscape):
        yield landscape


def shoots(landscape: KubernetesApi) -> dict[str, Document]:
    """Shoots by their names, without those of seeds that are grown."""
    listed: Document = json.loads(landscape.gardenbus("get", "shoots", "-A", "-o", "json"))
    named = {f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in listed["items"]}
    return {name: each for name, each in named.items() if not name.startswith(LEFT_OUT)}


def waiting(landscape: KubernetesApi) -> dict[str, Document]:
    """Shoots that fit nowhere, but for those of a region whose last places others have taken: their order decides."""
    found = shoots(landscape)
    full = {each["spec"]["region"] for each in found.values() if "capacity" in reason_of(each)}
    return {
        name: each
        for name, each in found.items()
        if "seedName" not in each["spec"] and each["spec"]["region"] not in full
    }


def operation_of(shoot: Document) -> Document:
    return section(shoot, "status", "lastOperation")


def reason_of(shoot: Document) -> str:
    return str(operation_of(shoot).get("description") or "")


async def test_gardeners_scheduler_has_the_same_shoots_wait_as_ours_and_says_why(
    scheduler: KubernetesApi, kubernetes_api: KubernetesApi
) -> None:
    async def all_are_decided(landscape: KubernetesApi) -> None:
        assert all(operation_of(each) for each in shoots(landscape).values())

    for landscape in (scheduler, kubernetes_api):
        await eventually(lambda landscape=landscape: all_are_decided(landscape), within=WITHIN, every=1.0)

    async def the_same_wait() -> None:
        assert waiting(scheduler).keys() == {*waiting(kubernetes_api)} & {*shoots(scheduler)}

    await eventually(the_same_wait, within=WITHIN, every=1.0)
    left = shoots(scheduler)
    for name, reason in REASONS.items():
        operation = operation_of(left[name])
        assert operation["state"] == "Pending"
        assert reason in reason_of(left[name])
    assert "pending" in scheduler.gardenbus("get", "shoot", "midas", "-n", "garden-dev")


async def test_a_shoot_of_our_scheduler_is_placed_by_it_and_the_other_one_goes_on_when_room_comes(
    scheduler: KubernetesApi,
) -> None:
    ours = scheduler.shoot("beside", schedulerName=OURS, networking={"type": "calico", "nodes": "172.31.0.0/16"})
    file = scheduler.place / "beside.json"
    file.write_text(json.dumps(ours))
    scheduler.gardenbus("apply", "-f", str(file))

    async def is_placed(name: str) -> None:
        assert scheduler.object("shoot", name)["spec"].get("seedName")

    await eventually(lambda: is_placed("beside"), within=WITHIN, every=0.5)
    await eventually(lambda: is_placed("apollo"), within=WITHIN, every=0.5)
    # A shoot of Gardener's that fits nowhere is placed by it once it does.
    scheduler.gardenbus("patch", "shoot", "sisyphus", "-n", "garden-dev", "-p", '{"spec":{"seedSelector":null}}')
    await eventually(lambda: is_placed("sisyphus"), within=WITHIN, every=0.5)
    events = scheduler.gardenbus("events", "shoot", "sisyphus", "-n", "garden-dev")
    assert "SchedulingFailed" in events
    assert "SchedulingSuccessful" in events


async def until_led(landscape: KubernetesApi, *, before: str = "") -> str:
    """Wait until a scheduler leads that did not before; returns its identity."""
    found = ""

    async def is_led() -> None:
        nonlocal found
        assert landscape.has("lease", LEASE, "garden")
        found = str(section(landscape.object("lease", LEASE, "garden"), "spec").get("holderIdentity") or "")
        assert found not in ("", before)

    await eventually(is_led, within=WITHIN, every=1.0)
    return found


async def test_of_two_schedulers_the_other_leads_once_the_leader_is_killed(landscape: KubernetesApi) -> None:
    async def is_placed(name: str) -> None:
        assert landscape.object("shoot", name)["spec"].get("seedName")

    async with a_scheduler(landscape) as first:
        leader = await until_led(landscape)
        async with a_scheduler(landscape):
            await eventually(lambda: is_placed("apollo"), within=WITHIN, every=0.5)
            assert await until_led(landscape) == leader
            first.kill()
            await until_led(landscape, before=leader)
            spec = section(landscape.object("lease", LEASE, "garden"), "spec")
            assert spec["leaseTransitions"] == 1
            # What fits only now is placed by the one that leads now.
            landscape.gardenbus(
                "patch", "shoot", "sisyphus", "-n", "garden-dev", "-p", '{"spec":{"seedSelector":null}}'
            )
            await eventually(lambda: is_placed("sisyphus"), within=WITHIN, every=0.5)
