"""No header of somebody outside makes the server do anything to the messages of others: no permission is about them."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.messages import RawMessage, encode_headers, publish_command
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey
from tests.support.eventually import HANG_SECONDS
from tests.support.identities import SUBJECTS, Guarded, guarded

GARDENLET, AGENT = Principal("gardenlet", "aws-cork"), Principal("member-agent", "paris")
PERSON = Principal("user", "ann")
ZEUS = ObjectKey("shoot", "garden-dev", "zeus")
OWN = {
    "LEASES": (GARDENLET, SUBJECTS.lease("aws-cork")),
    "REPORTS": (GARDENLET, SUBJECTS.report("aws-cork", ZEUS)),
    "reports of a member agent": (AGENT, SUBJECTS.report("member:paris", ZEUS)),
    "REQUESTS": (PERSON, SUBJECTS.as_user("ann", "apply")),
}
"""What outsiders may store, and who."""
STORED_AS = {SUBJECTS.as_user("ann", "apply"): SUBJECTS.from_outside("ann", "apply")}
"""Subjects that others become when they cross the accounts."""
OTHERS = {
    "LEASES": SUBJECTS.lease("aws-dublin"),
    "REPORTS": SUBJECTS.report("aws-dublin", ZEUS),
    "REQUESTS": SUBJECTS.as_user("operator", "delete"),
}
TARGET = SUBJECTS.lease("aws-dublin")
REJECTED: Mapping[str, Mapping[str, str]] = {
    "rollup of all": {"Nats-Rollup": "all"},
    "rollup of its subject": {"Nats-Rollup": "sub"},
    "life for ever": {"Nats-TTL": "never"},
    "short life": {"Nats-TTL": "1s"},
    "timer": {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": TARGET},
    "timer again and again": {"Nats-Schedule": "@every 1s", "Nats-Schedule-Target": TARGET, "Nats-Schedule-TTL": "1s"},
    "copy of what another said": {
        "Nats-Schedule": "@every 1s",
        "Nats-Schedule-Source": OTHERS["REPORTS"],
        "Nats-Schedule-Target": TARGET,
    },
    "end of another's timer": {"Nats-Schedule-Next": "purge", "Nats-Scheduler": OTHERS["REPORTS"]},
    "counter": {"Nats-Incr": "+1"},
    "expectations of another stream": {"Nats-Expected-Stream": "OBJECTS"},
    "expectations of another message": {"Nats-Expected-Last-Sequence": "99"},
    "expectations of an id": {"Nats-Expected-Last-Msg-Id": "nobody's"},
    "batch that does not begin": {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "2", "Nats-Batch-Commit": "1"},
}
"""Nothing of such a message is stored."""
TAKEN: Mapping[str, Mapping[str, str]] = {
    "marker": {"Nats-Marker-Reason": "Purge"},
    "forged sender": {"Nats-Request-Info": '{"acc":"GARDEN","user":"operator"}'},
    "id": {"Nats-Msg-Id": "1"},
}
"""Such a message is stored as any other; what it says of others is not done."""


@pytest.fixture
async def landscape(tmp_path: Path) -> AsyncIterator[Guarded]:
    """The server with its streams, as the relay makes them."""
    async with guarded(tmp_path / "landscape") as landscape:
        credentials = landscape.credentials(Principal("service", "relay"))
        async with jetstream.connect(landscape.server.url, "relay", credentials=credentials):
            yield landscape


async def _publish(connection: Connection, subject: str, headers: Mapping[str, str]) -> Any:
    raw = await connection.request_raw(subject, b"{}", header=encode_headers(headers), timeout_seconds=HANG_SECONDS)
    return json.loads(raw.body)


async def _subjects(operator: Connection, stream: str) -> Mapping[str, int]:
    raw = await operator.request_raw(
        f"$JS.API.STREAM.INFO.{stream}", b'{"subjects_filter": ">"}', timeout_seconds=HANG_SECONDS
    )
    found: Mapping[str, int] = json.loads(raw.body)["state"].get("subjects") or {}
    return found


async def test_headers_that_have_the_server_act_are_refused_or_do_nothing(landscape: Guarded) -> None:
    operator = await landscape.connect(Principal("operator", "operator"))
    service = await landscape.connect(Principal("service", "relay"))
    traced: list[RawMessage] = []
    await operator.listen(f"{SUBJECTS.prefix}.as.root.>", traced.append)
    for stream, subject in OTHERS.items():
        sender = operator if stream == "REQUESTS" else await landscape.connect(Principal("gardenlet", "aws-dublin"))
        assert (await _publish(sender, subject, {}))["stream"] == stream
    for place, (principal, subject) in OWN.items():
        outsider = await landscape.connect(principal)
        for what, headers in REJECTED.items():
            response = await _publish(outsider, subject, headers)
            assert "error" in response, (place, what, response)
        for what, headers in TAKEN.items():
            response = await _publish(outsider, subject, headers)
            assert "error" not in response, (place, what, response)
        trace = encode_headers({"Nats-Trace-Dest": SUBJECTS.as_user("root", "api.delete.configmap.garden.dear")})
        await outsider.send([publish_command(subject, b"{}", trace)])
        await outsider.flush_fully()
    await service.flush_fully()
    await operator.flush_fully()
    assert traced == []
    for stream, subject in OTHERS.items():
        subjects = await _subjects(operator, stream)
        assert subjects[subject] == 1, (stream, subjects)
        assert set(subjects) == {subject} | {
            STORED_AS.get(own, own) for _, own in OWN.values() if own.split(".")[1] == subject.split(".")[1]
        }
