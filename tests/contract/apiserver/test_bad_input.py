"""Whatever is sent, it is answered or kept with its reason, and the apiserver goes on."""

import hashlib
import json
from typing import Any

import pytest

from gardenbus.common.api.keys import ObjectKey
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_cloudprofile, a_project, a_shoot

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")


def as_json(document: Any) -> bytes:
    return json.dumps(document).encode()


def nested(depth: int) -> bytes:
    return as_json(a_shoot()).replace(b'"purpose"', b'"deep": ' + b"[" * depth + b"]" * depth + b', "purpose"')


YAML_BOMB = b"""
a: &a [x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]
c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]
d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]
e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]
f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e]
g: [*f, *f, *f, *f, *f, *f, *f, *f, *f]
"""

BAD = {
    "not UTF-8": (b"\xff\xfe{}", 400, "UTF-8"),
    "neither JSON nor YAML": (b"{]:", 400, "JSON"),
    "a YAML bomb": (YAML_BOMB, 400, ""),
    "5 MB": (as_json(a_shoot(spec={"blob": "x" * 5_000_000})), 400, "bytes"),
    "200 levels deep": (nested(200), 400, "deep"),
    "an unknown group": (as_json(a_shoot(apiVersion="apps.example/v1")), 400, "apiVersion"),
    "a missing name": (as_json(a_shoot(metadata={"name": None})), 400, "metadata.name"),
    "a name with subject characters": (as_json(a_shoot("a.b*>")), 422, "metadata.name"),
    "a wrong type deep inside": (
        as_json(a_shoot(spec={"provider": {"workers": [{"name": "a", "zones": "not a list"}]}})),
        422,
        "spec.provider.workers[0].zones",
    ),
    "a key twice": (as_json(a_shoot()).replace(b'"kind"', b'"kind": "Shoot", "kind"'), 400, "kind"),
    "NaN": (as_json(a_shoot(spec={"weight": float("nan")})), 400, ""),
    "a huge number": (as_json(a_shoot()).replace(b'"purpose"', b'"big": 1e999, "purpose"'), 400, ""),
    "100,000 empty workers": (
        as_json(a_shoot(spec={"provider": {"workers": [{}] * 100_000}})),
        400,
        "spec.provider.workers[",
    ),
    "half a million empty documents": (b"{} " * 500_000, 400, "20000 manifests"),
    "nothing": (b"", 400, ""),
    "no manifest": (b"[1, 2]", 400, ""),
}


@pytest.mark.parametrize("what", BAD)
async def test_it_is_answered_with_the_field_or_the_reason(apiserver: Apiserver, what: str) -> None:
    body, code, named = BAD[what]
    error = await apiserver.rejection("apply", body)

    assert error["code"] == code, error
    fields = [detail["field"] for detail in error["details"]]
    assert named in error["message"] or named in fields, error
    assert (await apiserver.request("apply", a_shoot()))["kind"] == "Shoot"


@pytest.mark.parametrize("what", [what for what, (body, _, _) in BAD.items() if body])
async def test_it_is_kept_with_its_reason_when_it_was_durable(apiserver: Apiserver, what: str) -> None:
    body, _, named = BAD[what]
    await apiserver.publish("apply", body)
    await apiserver.publish("apply", a_shoot())
    await apiserver.until_handled()

    (message,) = await apiserver.rejected()
    assert named in message.headers["Gardenbus-Reason"]
    assert message.headers["Gardenbus-Subject"] == apiserver.subjects.apply
    assert message.headers["Gardenbus-Sha256"] == hashlib.sha256(body).hexdigest()
    assert len(message.body) <= 64 * 1024
    assert (await apiserver.now(APOLLO)).generation == 1


async def test_an_empty_message_is_not_kept(apiserver: Apiserver) -> None:
    """There is nothing to keep, and a consumer that delivers heartbeats here would push others' messages out."""
    await apiserver.publish("apply", b"")
    await apiserver.publish("apply", a_shoot())
    await apiserver.until_handled()
    assert await apiserver.rejected() == []
    assert (await apiserver.now(APOLLO)).generation == 1


async def test_the_good_documents_of_a_message_are_taken(apiserver: Apiserver) -> None:
    documents = [a_project(), a_shoot(spec={"region": 5}), a_cloudprofile(), a_shoot("zeus")]
    await apiserver.publish("apply", b"\n".join(as_json(document) for document in documents))
    await apiserver.until_handled()

    assert "spec.region" in await apiserver.reason()
    (message,) = await apiserver.rejected()
    assert json.loads(message.body)["metadata"]["name"] == "apollo"
    await apiserver.now(ObjectKey("shoot", "garden-dev", "zeus"))
    await apiserver.now(ObjectKey("cloudprofile", "", "aws"))


async def test_a_refusal_of_a_known_object_is_an_event(apiserver: Apiserver) -> None:
    await apiserver.request("apply", a_shoot())
    await apiserver.publish("apply", a_shoot(spec={"region": 5}))
    await apiserver.until_handled()

    (warning,) = await apiserver.warnings()
    assert (warning.event.about, warning.event.reason) == (APOLLO, "Invalid")
    assert "spec.region" in warning.event.message


async def test_an_unknown_field_is_kept(apiserver: Apiserver) -> None:
    await apiserver.publish("apply", a_shoot(spec={"unheardOf": {"a": 1}}))
    await apiserver.until_handled()

    assert (await apiserver.now(APOLLO)).document()["spec"]["unheardOf"] == {"a": 1}


async def test_a_stale_version_is_kept_with_its_reason(apiserver: Apiserver) -> None:
    version = (await apiserver.request("apply", a_shoot()))["metadata"]["resourceVersion"]
    await apiserver.request("apply", a_shoot(metadata={"labels": {"a": "1"}}))
    await apiserver.publish("apply", a_shoot(metadata={"resourceVersion": version, "labels": {"a": "2"}}))

    assert "metadata.resourceVersion" in await apiserver.reason()


async def test_a_reason_cannot_forge_headers(apiserver: Apiserver) -> None:
    await apiserver.publish("apply", a_shoot(metadata={"name": "a\r\nGardenbus-Subject: forged"}))
    await apiserver.until_handled()

    (message,) = await apiserver.rejected()
    assert message.headers["Gardenbus-Subject"] == apiserver.subjects.apply


@pytest.mark.parametrize("body", [b"\xff", b"{}", b'{"kind": "Shoot"}', b'{"kind": "Spaceship", "name": "a"}'])
async def test_a_deletion_that_names_nothing_is_kept(apiserver: Apiserver, body: bytes) -> None:
    await apiserver.publish("delete", body)

    assert await apiserver.reason()
