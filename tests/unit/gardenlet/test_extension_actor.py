"""Extension objects on an API that misbehaves as no real one can be made to, and with a second gardenlet."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web

from gardenbus.common.api.document import Document, section
from gardenbus.common.ports.clock import timestamp
from gardenbus.gardenlet.backend.extensions.actor import ExtensionActor
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.extensions.shoot_namespaces import NAMESPACE_SECONDS, ShootNamespaces
from gardenbus.gardenlet.backend.port import StaleFencingToken, StepFailed, StepRequest
from gardenbus.gardenlet.domain.extension_objects.kinds import WAITS, ExtensionObject
from gardenbus.gardenlet.domain.managed_resources.names import OPERATION
from tests.support.clocks import FakeClock
from tests.support.kube_api import Handler, a_status, an_api_server
from tests.support.overlaid_seeds import MemoryGarden
from tests.support.resource_managers import with_stub_kubeconfigs
from tests.support.stub_kubernetes import StubKubernetes

NAMESPACE = "shoot--dev--apollo"
INFRASTRUCTURE = ExtensionObject("Infrastructure", NAMESPACE, "apollo", {"type": "aws"})
WAITING = f"Error while waiting for Infrastructure {NAMESPACE}/apollo to become ready: "
REQUEST = StepRequest(("garden-dev", "apollo"), "uid", "namespace", "Delete", None, {})
Owned = Callable[[], AbstractContextManager[None]]


async def no_response(request: web.Request) -> web.Response:
    """End the connection in the middle of a request."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


class Seed:
    """The API of a seed; `faults` are responses in the place of its own, one for each request that `hit` selects."""

    def __init__(self, stub: StubKubernetes, kubeconfig: Path) -> None:
        self.stub = stub
        self.clock = FakeClock()
        self.faults: list[Handler] = []
        self.hit: Callable[[web.Request], bool] = _is_read
        self.fulfilled_after: int | None = 0
        """Reads after which the extension has done what was requested; None: never."""
        self._kubeconfig = kubeconfig
        self._reads = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Respond to one request."""
        if self.faults and self.hit(request):
            return await self.faults.pop(0)(request)
        if _is_read(request) and (live := self.live()) is not None:
            self._reads += 1
            if self.fulfilled_after is not None and self._reads > self.fulfilled_after:
                self._fulfil(live)
        return await self.stub.handle(request)

    def live(self) -> Document | None:
        return self.stub.get("Infrastructure", NAMESPACE, "apollo")

    def _fulfil(self, live: Document) -> None:
        last = {"type": "Create", "state": "Succeeded", "lastUpdateTime": timestamp(self.clock.now())}
        status = {"observedGeneration": section(live, "metadata")["generation"], "lastOperation": last}
        patch = {"metadata": {"annotations": {OPERATION: None}}, "status": status}
        self.stub.change("Infrastructure", NAMESPACE, "apollo", patch)

    @asynccontextmanager
    async def api(self, owned: Owned = nullcontext) -> AsyncGenerator[SeedAPI]:
        """The API as a gardenlet uses it."""
        api = SeedAPI(self._kubeconfig, self.clock, owned)
        api.open()
        try:
            yield api
        finally:
            await api.close()

    @asynccontextmanager
    async def actor(self, owned: Owned = nullcontext) -> AsyncGenerator[ExtensionActor]:
        async with self.api(owned) as api:
            yield ExtensionActor(api, self.clock)


def _is_read(request: web.Request) -> bool:
    return request.method == "GET" and request.path.endswith("/infrastructures/apollo")


def _is_write(request: web.Request) -> bool:
    return request.method != "GET"


@pytest.fixture
async def seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Seed]:
    stub = StubKubernetes()
    seed = Seed(stub, tmp_path / "seed.kubeconfig")
    with_stub_kubeconfigs(stub, monkeypatch)
    async with an_api_server(seed.handle) as url:
        stub.url = url
        yield seed


class Fault(NamedTuple):
    """A response that is none, and what is said of it."""

    response: Handler
    text: str


FAULTS = {
    "no response": Fault(no_response, ""),
    "403": Fault(a_status(403, "not yours", reason="Forbidden"), "not yours"),
    "410": Fault(a_status(410, "too old", reason="Expired"), "too old"),
    "429": Fault(a_status(429, "too many", headers={"Retry-After": "3"}, reason="TooManyRequests"), "too many"),
    "503": Fault(a_status(503, "etcd is away", reason="ServiceUnavailable"), "etcd is away"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_wait_goes_on_when_the_api_is_back(seed: Seed, fault: Fault) -> None:
    async with seed.actor() as actor:
        seed.fulfilled_after = 2
        waiting = asyncio.create_task(actor.reconcile(INFRASTRUCTURE))
        while seed.live() is None:
            await asyncio.sleep(0)
        seed.faults = [fault.response] * 4
        assert section(await waiting, "status", "lastOperation")["state"] == "Succeeded"
        assert seed.faults == []
        assert [each.method for each in seed.stub.writes()] == ["POST"], "nothing is requested twice"


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_an_api_that_stays_away_ends_a_wait_at_its_limit_with_the_reason(seed: Seed, fault: Fault) -> None:
    async with seed.actor() as actor:
        seed.fulfilled_after = None
        waiting = asyncio.create_task(actor.reconcile(INFRASTRUCTURE))
        while seed.live() is None:
            await asyncio.sleep(0)
        seed.faults = [fault.response] * 1000
        with pytest.raises(StepFailed) as failed:
            await waiting
    assert failed.value.message.startswith(f"{WAITING}the seed's API gives no response: ")
    assert failed.value.message.endswith(fault.text)
    assert failed.value.codes == ()
    assert seed.clock.monotonic() == pytest.approx(WAITS["Infrastructure"].timeout, abs=30)


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - {"410"}))
async def test_a_write_that_is_rejected_fails_the_step_and_leaves_the_others_alone(seed: Seed, name: str) -> None:
    fault = FAULTS[name]
    async with seed.actor() as actor:
        seed.hit, seed.faults = _is_write, [fault.response]
        with pytest.raises(StepFailed, match=f"Error while requesting Infrastructure {NAMESPACE}/apollo: ") as failed:
            await actor.reconcile(INFRASTRUCTURE)
        assert failed.value.message.endswith(fault.text)
        assert seed.live() is None
        assert await actor.reconcile(INFRASTRUCTURE), "the next try is as good as the first"


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_list_that_fails_is_no_empty_list(seed: Seed, fault: Fault) -> None:
    async with seed.actor() as actor:
        seed.hit = lambda request: request.path.endswith("/infrastructures")
        seed.faults = [fault.response] * 2  # the client itself repeats a read whose connection ended
        with pytest.raises(StepFailed, match=f"Infrastructures of {NAMESPACE} cannot be listed: "):
            await actor.live("Infrastructure", NAMESPACE)
        seed.faults = []
        assert await actor.live("Infrastructure", NAMESPACE) == []


async def test_an_object_that_somebody_removes_during_a_wait_is_named(seed: Seed) -> None:
    async with seed.actor() as actor:
        seed.fulfilled_after = None
        waiting = asyncio.create_task(actor.reconcile(INFRASTRUCTURE))
        while seed.live() is None:
            await asyncio.sleep(0)
        seed.stub.delete("Infrastructure", NAMESPACE, "apollo")
        with pytest.raises(StepFailed, match=f"{WAITING}it does not exist"):
            await waiting


# ------------------------------------------------------------------------------------------ two gardenlets


class Ownership:
    """Whose the seed is. A gardenlet that has lost it may not write any more."""

    def __init__(self) -> None:
        self.is_lost = False

    def check(self) -> AbstractContextManager[None]:
        if self.is_lost:
            raise StaleFencingToken("another gardenlet has acquired the seed")
        return nullcontext()


async def test_a_gardenlet_that_has_lost_the_seed_writes_nothing_to_its_api(seed: Seed) -> None:
    old = Ownership()
    async with seed.actor(old.check) as loser, seed.actor() as winner:
        await winner.reconcile(INFRASTRUCTURE)
        old.is_lost = True
        seen = len(seed.stub.requests)
        changed = INFRASTRUCTURE._replace(spec={"type": "of the old one"})
        with pytest.raises(StaleFencingToken):
            await loser.reconcile(changed)
        with pytest.raises(StaleFencingToken):
            await loser.restore(changed, None, ())
        for action in (loser.delete, loser.migrate):
            with pytest.raises(StaleFencingToken):
                await action("Infrastructure", NAMESPACE, ["apollo"])
        assert seed.stub.writes(seen) == []
        assert section(seed.live() or {}, "spec") == {"type": "aws"}


async def test_a_wait_of_a_gardenlet_that_loses_the_seed_repeats_no_request(seed: Seed) -> None:
    old = Ownership()
    async with seed.actor(old.check) as loser:
        seed.fulfilled_after = None
        waiting = asyncio.create_task(loser.reconcile(INFRASTRUCTURE))
        while seed.live() is None:
            await asyncio.sleep(0)
        old.is_lost = True
        with pytest.raises(StaleFencingToken):
            await waiting
        assert [each.method for each in seed.stub.writes()] == ["POST"]


async def test_a_write_between_read_and_write_of_another_is_not_overwritten(seed: Seed) -> None:
    async with seed.actor() as actor:
        await actor.reconcile(INFRASTRUCTURE)
        annotated = {"metadata": {"annotations": {"example.org/by": "an extension"}}}

        async def meanwhile(request: web.Request) -> web.StreamResponse:
            seed.stub.change("Infrastructure", NAMESPACE, "apollo", annotated)
            return await seed.stub.handle(request)

        seed.hit, seed.faults = _is_write, [meanwhile]
        await actor.reconcile(INFRASTRUCTURE._replace(spec={"type": "aws", "region": "eu"}))
        live = seed.live() or {}
        assert section(live, "metadata", "annotations")["example.org/by"] == "an extension"
        assert section(live, "spec") == {"type": "aws", "region": "eu"}


# ------------------------------------------------------------------------------------------ Terminating


def with_namespace(seed: Seed, *finalizers: str) -> None:
    """A namespace of a shoot that something keeps, and its Cluster."""
    metadata = {"name": NAMESPACE, "finalizers": list(finalizers)}
    seed.stub.put({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    cluster = {"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": NAMESPACE}}
    seed.stub.put(cluster)


async def test_a_namespace_that_hangs_in_terminating_fails_the_step_and_its_cluster_stays(seed: Seed) -> None:
    with_namespace(seed, "example.org/held")
    async with seed.api() as api:
        namespaces = ShootNamespaces("aws-eu1", api, MemoryGarden(), seed.clock)
        with pytest.raises(StepFailed, match=f"Namespace {NAMESPACE} is still present"):
            await namespaces.remove(REQUEST)
        assert seed.clock.monotonic() == pytest.approx(NAMESPACE_SECONDS, abs=10)
        assert [each.path for each in seed.stub.writes()] == [f"/api/v1/namespaces/{NAMESPACE}"], "one deletion"
        assert seed.stub.get("Cluster", "", NAMESPACE) is not None, "extensions need it until the end"

        seed.stub.change("Namespace", "", NAMESPACE, {"metadata": {"finalizers": None}})
        await namespaces.remove(REQUEST)
        assert seed.stub.get("Namespace", "", NAMESPACE) is None
        assert seed.stub.get("Cluster", "", NAMESPACE) is None


async def test_a_namespace_is_not_removed_by_a_gardenlet_that_has_lost_the_seed(seed: Seed) -> None:
    with_namespace(seed)
    old = Ownership()
    old.is_lost = True
    async with seed.api(old.check) as api:
        namespaces = ShootNamespaces("aws-eu1", api, MemoryGarden(), seed.clock)
        with pytest.raises(StaleFencingToken):
            await namespaces.remove(REQUEST)
    assert seed.stub.writes() == []
