"""Whoever has stolen a gardenlet's credential changes nothing that its seed does not lead to.

`GARDENBUS_STOLEN_REQUESTS` random requests (by default 500), by the seed `GARDENBUS_STOLEN_SEED`.
"""

import itertools
import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import Login, login_credentials, read_credentials
from gardenbus.common.adapters.nats.messages import RawMessage, publish_command
from gardenbus.common.api.document import Document, StoredObject, encode, section
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey
from gardenbus.credentials import secret_files
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.guarded_landscape import CLOCK, GuardedLandscape, guarded_landscape
from tests.support.identities import SUBJECTS
from tests.support.stolen_credential import Thief, Victim

REQUESTS = int(os.environ.get("GARDENBUS_STOLEN_REQUESTS", "500"))
SEED = int(os.environ.get("GARDENBUS_STOLEN_SEED", "1"))
CORK, DUBLIN = Principal("gardenlet", "aws-cork"), Principal("gardenlet", "aws-dublin")
LEASE: Document = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "aws-dublin"}}
CHUNK = 50


@pytest.fixture
async def landscape(tmp_path: Path) -> AsyncIterator[GuardedLandscape]:
    """Two seeds, a shoot and a Secret of each, and what belongs to neither."""
    secret: Document = {"apiVersion": "v1", "kind": "Secret", "data": {"password": "c2VjcmV0"}}
    async with guarded_landscape(tmp_path / "landscape") as landscape:
        documents = [
            a_project(),
            a_cloudprofile(),
            a_seed("aws-cork"),
            a_seed("aws-dublin"),
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dear", "namespace": "garden"}},
        ]
        for name, seed in (("apollo", "aws-cork"), ("zeus", "aws-dublin")):
            documents.append({**secret, "metadata": {"name": f"{name}-dns", "namespace": "garden-dev"}})
            dns = {"providers": [{"type": "aws", "secretName": f"{name}-dns"}]}
            documents.append(a_shoot(name, spec={"seedName": seed, "dns": dns}))
        for document in documents:
            await landscape.operator.request("apply", document)
        yield landscape


async def _operator(landscape: GuardedLandscape) -> Connection:
    login = Login("operator", "the operator's")
    return await landscape.connect(login_credentials(login), "operator")


async def _gardenlet(landscape: GuardedLandscape, principal: Principal) -> Connection:
    issued = landscape.keys.authority.client(principal, CLOCK.now())
    file = landscape.directory / f"{principal.name}.pem"
    secret_files.write(file, issued.certificate + issued.key)
    return await landscape.connect(read_credentials(file, ""), principal.user)


async def _call(connection: Connection, call: str, body: object = None) -> Any:
    payload = b"" if body is None else encode(body)
    return json.loads((await connection.request_raw(f"$JS.API.{call}", payload, timeout_seconds=HANG_SECONDS)).body)


def _leads_to(key: ObjectKey, stored: StoredObject) -> bool:
    """True for what the gardenlet of aws-cork may write: its Seed, its shoots, and its requests for certificates."""
    document = stored.document()
    seeds = {section(document, part).get("seedName") for part in ("spec", "status")}
    return (
        key == ObjectKey("seed", "", "aws-cork")
        or seeds & {"aws-cork"} == {"aws-cork"}
        or (key.kind == "shootstate" and key.name == "apollo")
        or (key.kind == "certificatesigningrequest" and section(document, "spec").get("username") == CORK.user)
    )


async def _others(landscape: GuardedLandscape) -> Mapping[ObjectKey, tuple[str, int]]:
    """Uid and version of every object that aws-cork does not lead to."""
    stored = await landscape.all_stored()
    return {key: (each.uid, each.version) for key, each in stored.items() if not _leads_to(key, each)}


async def _last(operator: Connection, stream: str, subject: str) -> Any:
    return (await _call(operator, f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject}))["message"]["seq"]


async def test_random_requests_change_nothing_that_its_seed_does_not_lead_to(landscape: GuardedLandscape) -> None:
    await _change_nothing_of_others(landscape, REQUESTS)


@pytest.mark.long
async def test_ten_thousand_random_requests_change_nothing_either(landscape: GuardedLandscape) -> None:
    await _change_nothing_of_others(landscape, 10_000)


async def _change_nothing_of_others(landscape: GuardedLandscape, requests: int) -> None:
    operator, thief = await _operator(landscape), await _gardenlet(landscape, CORK)
    zeus = SUBJECTS.binding("aws-dublin", "garden-dev", "zeus")

    async def bound() -> int:
        return await _last(operator, "BINDINGS", zeus)

    binding = await eventually(bound)
    before = await _others(landscape)
    assert ObjectKey("shoot", "garden-dev", "zeus") in before
    victims = [Victim(key, each.uid, each.document()) for key, each in (await landscape.all_stored()).items()]
    commands = Thief(CORK, victims, SEED).commands(requests)
    responses: list[RawMessage] = []
    await thief.listen(f"{CORK.inbox}.x", responses.append)
    while chunk := list(itertools.islice(commands, CHUNK)):
        await thief.send(chunk)
        await thief.flush_fully()

    async def handled() -> None:
        for stream in ("REQUESTS", "REPORTS"):
            assert (await _call(operator, f"STREAM.INFO.{stream}"))["state"]["messages"] == 0, stream

    await eventually(handled)
    response = await thief.request_raw(SUBJECTS.as_user(CORK.user, "api.whoami"), b"", timeout_seconds=HANG_SECONDS)
    assert json.loads(response.body)["result"]["user"] == CORK.user
    assert thief.losses == 0
    assert await _others(landscape) == before
    assert await _last(operator, "BINDINGS", zeus) == binding
    rejected, reports = [(await _call(operator, f"STREAM.INFO.{name}"))["state"] for name in ("REJECTED", "REPORTS")]
    assert min(rejected["messages"], reports["last_seq"], len(responses)) > requests / 50
    reported = await _call(operator, "STREAM.INFO.LEASES", {"subjects_filter": ">"})
    assert SUBJECTS.lease("aws-dublin") not in reported["state"].get("subjects", {})
    subjects = await _call(operator, "STREAM.INFO.BINDINGS", {"subjects_filter": ">"})
    assert zeus in subjects["state"]["subjects"]


async def test_a_rollup_leaves_the_leases_of_others_alone(landscape: GuardedLandscape) -> None:
    operator = await _operator(landscape)
    thief, honest = await _gardenlet(landscape, CORK), await _gardenlet(landscape, DUBLIN)
    before = await _others(landscape)
    body = encode({**LEASE, "metadata": {"name": "aws-cork"}})
    block = b"NATS/1.0\r\nNats-Rollup: all\r\n\r\n"
    await honest.request_raw(SUBJECTS.lease("aws-dublin"), encode(LEASE), timeout_seconds=HANG_SECONDS)
    response = await thief.request_raw(SUBJECTS.lease("aws-cork"), body, header=block, timeout_seconds=HANG_SECONDS)
    assert json.loads(response.body)["error"]["description"] == "rollup not permitted"
    assert await _last(operator, "LEASES", SUBJECTS.lease("aws-dublin")) == 1
    assert await _others(landscape) == before


OWN = SUBJECTS.bindings_of("aws-cork")
DEPUTIES = {
    "acknowledgement of a stored message": SUBJECTS.lease("aws-cork"),
    "answer of the apiserver": SUBJECTS.as_user(CORK.user, "api.whoami"),
    "direct get": f"IN.API.DIRECT.GET.LEASES.{SUBJECTS.lease('aws-cork')}",
    "next message": "IN.API.CONSUMER.MSG.NEXT.BINDINGS.aws-cork",
}
BODIES = {"next message": {"batch": 1, "expires": 10**9}, "acknowledgement of a stored message": LEASE}


async def test_nobody_is_made_to_act_by_a_reply_subject(landscape: GuardedLandscape) -> None:
    """Server and apiserver answer to whatever subject a request names: to one of outsiders."""
    operator, thief = await _operator(landscape), await _gardenlet(landscape, CORK)
    binding = SUBJECTS.binding("aws-cork", "garden-dev", "apollo")
    await eventually(lambda: _last(operator, "BINDINGS", binding))
    config = {"name": "aws-cork", "filter_subject": OWN, "ack_policy": "explicit", "deliver_policy": "all"}
    call = f"IN.API.CONSUMER.CREATE.BINDINGS.aws-cork.{OWN}"
    manifest = encode({"stream_name": "BINDINGS", "config": config})
    created = await thief.request_raw(call, manifest, timeout_seconds=HANG_SECONDS)
    assert "error" not in json.loads(created.body)
    before, received = await _others(landscape), list[RawMessage]()
    for family in ("as.root.>", "report.>", "lease.aws-dublin", "queue.garbage.>"):
        await operator.listen(f"{SUBJECTS.prefix}.{family}", received.append)
    await operator.flush_fully()
    deputised = (
        SUBJECTS.as_user("root", "apply"),
        SUBJECTS.as_user("root", "api.delete.configmap.garden.dear"),
        SUBJECTS.report("aws-dublin", ObjectKey("shoot", "garden-dev", "zeus")),
        SUBJECTS.lease("aws-dublin"),
        SUBJECTS.queue("garbage", "garden-dev", "zeus"),
    )
    bodies = {name: encode(BODIES[name]) if name in BODIES else b"" for name in DEPUTIES}
    for name, subject in DEPUTIES.items():
        await thief.send([publish_command(subject, bodies[name], reply=reply) for reply in deputised])
    await thief.flush_fully()
    for name, subject in DEPUTIES.items():  # each does answer to one's own inbox, after it has answered the others
        if name != "next message":
            assert (await thief.request_raw(subject, bodies[name], timeout_seconds=HANG_SECONDS)).body, name
    waiting = await thief.request_raw("IN.API.CONSUMER.INFO.BINDINGS.aws-cork", b"", timeout_seconds=HANG_SECONDS)
    assert json.loads(waiting.body)["delivered"]["consumer_seq"] > 0
    await operator.flush_fully()
    assert received == []
    for stream in ("REQUESTS", "REPORTS"):
        assert (await _call(operator, f"STREAM.INFO.{stream}"))["state"]["messages"] == 0, stream
    assert await _others(landscape) == before


PUSHED_TO = ("garden.apply", "garden.delete", "garden.rejected", SUBJECTS.lease("aws-dublin"), "$SRV.INFO.apiserver")
"""Subjects with a subscription of that very name, which is what has the server push: of streams and services."""


async def test_no_consumer_pushes_into_the_services_account(landscape: GuardedLandscape) -> None:
    """No permission is about what a consumer's configuration says: the apiserver makes it, and no other than pull."""
    operator, thief = await _operator(landscape), await _gardenlet(landscape, CORK)
    binding = SUBJECTS.binding("aws-cork", "garden-dev", "apollo")
    await eventually(lambda: _last(operator, "BINDINGS", binding))
    pushed, before = list[RawMessage](), await _others(landscape)
    for subject in PUSHED_TO[:-1]:
        await operator.listen(subject, pushed.append)
    await operator.flush_fully()
    for subject in PUSHED_TO:
        config = {"name": "aws-cork", "filter_subject": OWN, "ack_policy": "none", "deliver_policy": "all"}
        manifest = encode({"stream_name": "BINDINGS", "config": {**config, "deliver_subject": subject}})
        call = f"IN.API.CONSUMER.CREATE.BINDINGS.aws-cork.{OWN}"
        created = await thief.request_raw(call, manifest, timeout_seconds=HANG_SECONDS)
        assert "deliver_subject" in json.loads(created.body)["error"]["description"]
    await operator.flush_fully()
    assert pushed == []
    for stream in ("REQUESTS", "REJECTED", "LEASES"):
        assert (await _call(operator, f"STREAM.INFO.{stream}"))["state"]["last_seq"] == 0, stream
    assert await _others(landscape) == before
