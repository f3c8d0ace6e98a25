"""Plants, against API servers over HTTP: healthy ones, and such as nobody would run in good faith."""

import asyncio
import base64
import ssl
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
import yaml
from aiohttp import web

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done
from gardenbus.controllermanager import plant_clusters
from gardenbus.controllermanager.controllers import plant
from gardenbus.controllermanager.domain.plants import (
    NodeCondition,
    NodeMetadata,
    NodeSpec,
    NodeStatus,
    PlantNode,
    facts_of,
    first_problem,
)
from gardenbus.credentials.certificates import Authority, Issued, new_authority
from tests.support.eventually import HANG_SECONDS
from tests.support.kube_api import Handler, a_status
from tests.support.loops import Garden, request_of
from tests.support.plants import KEY, NAMESPACE, SECRET, a_plant, a_secret, checked_plant

NOW = datetime.now(UTC)
CA = new_authority("one", NOW)
OTHER = new_authority("another", NOW)

READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}


@asynccontextmanager
async def a_cluster(handler: Handler, *, authority: Issued = CA) -> AsyncGenerator[str]:
    """The kubeconfig of a server with a certificate of an authority; the kubeconfig trusts the usual one."""
    issued = Authority(authority).server(["127.0.0.1"], NOW)
    with tempfile.NamedTemporaryFile() as file:
        file.write(issued.certificate + issued.key)
        file.flush()
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(file.name)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        yield a_kubeconfig(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def a_kubeconfig(port: int) -> str:
    authority = base64.b64encode(CA.certificate).decode()
    config: Document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [
            {"name": "k", "cluster": {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": authority}}
        ],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    return yaml.safe_dump(config)


def a_node(name: str, **conditions: str) -> Document:
    listed = [READY, *({"type": kind, "status": status, "reason": "R"} for kind, status in conditions.items())]
    labels = {"topology.kubernetes.io/region": "eu-west-1"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": f"aws:///eu-west-1a/{name}"},
        "status": {"conditions": listed, "images": [{"names": ["not", "read"]}]},
    }


def serving(nodes: Sequence[Document], **others: web.Response) -> Handler:
    """An API server whose list of nodes has a page for each."""

    async def handler(request: web.Request) -> web.StreamResponse:
        path = request.path.rpartition("/")[2]
        if path in others:
            return others[path]
        if path == "healthz":
            return web.Response(text="ok")
        if path == "version":
            return web.json_response({"gitVersion": "v1.34.4"})
        page = int(request.query.get("continue", "0"))
        following = {"continue": str(page + 1)} if page + 1 < len(nodes) else {}
        return web.json_response({"items": list(nodes[page : page + 1]), "metadata": following})

    return handler


def statuses(document: Document) -> list[tuple[str, str, str]]:
    return [(each["type"], each["status"], each["reason"]) for each in conditions_of(document)]


def message_of(document: Document, kind: str) -> str:
    return str((get_condition(conditions_of(document), kind) or {})["message"])


async def test_a_healthy_cluster_has_both_conditions_its_cloud_and_its_version() -> None:
    async with a_cluster(serving([a_node("n0"), a_node("n1", DiskPressure="False")])) as kubeconfig:
        document = await checked_plant(Garden(), kubeconfig)
    assert statuses(document) == [
        ("APIServerAvailable", "True", "HealthzRequestSucceeded"),
        ("EveryNodeReady", "True", "EveryNodeReady"),
    ]
    assert message_of(document, "APIServerAvailable") == (
        "API server /healthz endpoint responded with success status code."
    )
    assert message_of(document, "EveryNodeReady") == "All nodes are ready."
    assert document["status"]["clusterInfo"] == {
        "cloud": {"type": "aws", "region": "eu-west-1"},
        "kubernetes": {"version": "v1.34.4"},
    }


async def test_a_second_check_that_finds_the_same_writes_nothing() -> None:
    garden = Garden()
    async with a_cluster(serving([])) as kubeconfig:
        first = await checked_plant(garden, kubeconfig)
        assert first["status"]["clusterInfo"]["cloud"] == {"type": "<unknown>", "region": "<unknown>"}
        garden.clock.advance(30)
        assert await checked_plant(garden) == first


async def test_a_node_of_a_later_page_that_has_a_problem_is_named() -> None:
    async with a_cluster(serving([a_node("n0"), a_node("n1", MemoryPressure="True")])) as kubeconfig:
        document = await checked_plant(Garden(), kubeconfig)
    assert statuses(document)[1] == ("EveryNodeReady", "False", "NodesUnhealthy")
    assert message_of(document, "EveryNodeReady") == (
        'Node n1 is unhealthy: condition "MemoryPressure" has invalid status True (expected False) due to R:'
    )


@pytest.mark.parametrize(
    ("content", "has_secret", "message"),
    [
        ("", False, "Referenced Plant secret could not be found."),
        (None, True, "Plant secret needs to contain a kubeconfig key."),
        (b"\xff", True, "no base64 of UTF-8"),
        ("x" * 70_000, True, "more than 64 KiB"),
        ("[" * 20_000, True, "failed to get plant client: "),
        ("{}", True, "failed to get plant client: current-context: is missing"),
    ],
)
async def test_without_a_way_to_the_cluster_both_conditions_say_why(
    content: str | bytes | None, has_secret: bool, message: str
) -> None:
    document = await checked_plant(Garden(), content, has_secret=has_secret)
    assert statuses(document) == [
        ("APIServerAvailable", "False", "APIServerDown"),
        ("EveryNodeReady", "False", "Nodes not reachable"),
    ]
    assert message in message_of(document, "EveryNodeReady")
    assert document["status"]["clusterInfo"] == {"cloud": {"type": "", "region": ""}, "kubernetes": {"version": ""}}


async def endless(_request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(_request)
    while True:
        await response.write(b"[" * (1 << 16))


async def silent(_request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def redirecting(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound(f"https://{request.host}/elsewhere")


@pytest.mark.parametrize(
    ("handler", "reason", "message"),
    [
        (endless, "HealthzRequestFailed", "sends more than 16384 bytes"),
        (silent, "HealthzRequestFailed", "does not respond"),
        (redirecting, "HealthzRequestError", "non ok status code 302"),
        (a_status(500, "down\n\x1b[31m"), "HealthzRequestError", "non ok status code 500"),
    ],
)
async def test_a_server_that_misbehaves_is_a_finding(
    handler: Handler, reason: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plant_clusters, "CHECK_SECONDS", 0.5 if handler is silent else HANG_SECONDS)
    async with a_cluster(handler) as kubeconfig:
        document = await checked_plant(Garden(), kubeconfig)
    assert statuses(document)[0] == ("APIServerAvailable", "False", reason)
    assert message in message_of(document, "APIServerAvailable")
    assert message_of(document, "APIServerAvailable").isprintable()
    assert "clusterInfo" not in document["status"]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (web.Response(status=403, text="no"), "GET /api/v1/nodes: 403 no"),
        (web.Response(text="[" * 100_000), "is no list of nodes"),
        (web.json_response({"items": [{"metadata": 1}]}), "is no list of nodes"),
        (web.json_response({"items": [], "metadata": {"continue": "again"}}), "has more than 200 pages"),
        (web.Response(body=b" " * (1 << 22) + b"  "), "sends more than 4194304 bytes"),
    ],
    ids=["forbidden", "deep", "of another type", "without an end", "large"],
)
async def test_nodes_that_cannot_be_listed_leave_their_condition_unknown(nodes: web.Response, message: str) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("nodes"):
            return web.Response(status=nodes.status, body=nodes.body)
        return await serving([])(request)

    async with a_cluster(handler) as kubeconfig:
        document = await checked_plant(Garden(), kubeconfig)
    assert statuses(document) == [
        ("APIServerAvailable", "True", "HealthzRequestSucceeded"),
        ("EveryNodeReady", "Unknown", "ConditionCheckError"),
    ]
    assert message in message_of(document, "EveryNodeReady")


async def test_a_server_with_a_certificate_of_another_authority_gets_no_credentials() -> None:
    requests: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        requests.append(request.path)
        return web.Response(text="ok")

    async with a_cluster(handler, authority=OTHER) as kubeconfig:
        document = await checked_plant(Garden(), kubeconfig)
    assert "is not the server that is trusted" in message_of(document, "APIServerAvailable")
    assert requests == []


async def test_the_secret_stays_until_the_last_plant_that_names_it_is_gone() -> None:
    garden = Garden()
    await checked_plant(garden, "{}")
    await garden.add(a_plant("moss"))
    assert await garden.delete(SECRET)
    assert await garden.delete(KEY)
    assert await garden.reconcile(plant.LOOP, KEY) == Done("it is released")
    assert await garden.now("plant", "fern", NAMESPACE) is None
    assert await garden.now("secret", "fern", NAMESPACE) is not None
    moss = ObjectKey("plant", NAMESPACE, "moss")
    await garden.reconcile(plant.LOOP, moss)
    assert await garden.delete(moss)
    await garden.reconcile(plant.LOOP, moss)
    assert await garden.now("plant", "moss", NAMESPACE) is None
    assert await garden.now("secret", "fern", NAMESPACE) is None


class BehindCache:
    """An informer's cache to which the end of no Plant has been announced yet."""

    def __init__(self, garden: Garden) -> None:
        self._plants = dict(garden.context("plant").objects.objects("plant"))

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        return self._plants if kind == "plant" else {}


async def test_two_plants_that_are_deleted_at_once_leave_the_secret_to_none() -> None:
    garden = Garden()
    await checked_plant(garden, "{}")
    await garden.add(a_plant("moss"))
    moss = ObjectKey("plant", NAMESPACE, "moss")
    await garden.reconcile(plant.LOOP, moss)
    for key in (SECRET, KEY, moss):
        assert await garden.delete(key)
    built = plant.LOOP.build(garden.context("plant")._replace(objects=BehindCache(garden)))
    for key in (KEY, moss):
        await built.reconcile(request_of(plant.LOOP, key))
    assert await garden.now("secret", "fern", NAMESPACE) is None


async def test_another_kubeconfig_has_the_plants_that_name_it_checked() -> None:
    garden = Garden()
    fern, secret = await garden.add(a_plant()), await garden.add(a_secret("{}"))
    built = plant.LOOP.build(garden.context("plant"))
    built.changed(SECRET, None, secret)
    built.changed(KEY, None, fern)
    assert garden.enqueued == [("plant", KEY)]
    labelled = await garden.change(SECRET, lambda document: document["metadata"].update(labels={"a": "b"}))
    built.changed(SECRET, secret, labelled)
    assert garden.enqueued == [("plant", KEY)]
    other = await garden.change(SECRET, lambda document: document.update(data={"kubeconfig": "e30K"}))
    built.changed(SECRET, labelled, other)
    assert garden.enqueued == 2 * [("plant", KEY)]
    built.changed(KEY, fern, None)
    built.changed(SECRET, other, secret)
    assert garden.enqueued == 2 * [("plant", KEY)]


def test_a_node_that_reports_nothing_is_unhealthy() -> None:
    assert first_problem([PlantNode(NodeMetadata("n"))]) == 'Node n is unhealthy: condition "Ready" is missing'
    late = PlantNode(
        NodeMetadata("n"), status=NodeStatus([NodeCondition("Ready", "Unknown", "NodeStatusUnknown", "late")])
    )
    assert first_problem([late]) == (
        'Node n is unhealthy: condition "Ready" has invalid status Unknown (expected True) due to NodeStatusUnknown: '
        "late"
    )


def test_a_server_cannot_make_the_status_long() -> None:
    node = PlantNode(NodeMetadata("n", {"topology.kubernetes.io/region": "r" * 10_000}), NodeSpec("p" * 10_000 + "://"))
    assert [len(each) for each in facts_of(node, "v" * 10_000)] == [63, 63, 63]
