"""Asking and answering."""

import asyncio
import json

import pytest

from gardenbus.common.errors import FieldProblem, InvalidResource, Unavailable
from gardenbus.common.ports.bus import Request
from tests.support.buses import BusUnderTest
from tests.support.eventually import HANG_SECONDS


async def echo(request: Request) -> bytes:
    return json.dumps([request.subject, request.body.decode(), request.headers.get("Who")]).encode()


async def test_an_endpoint_answers_what_falls_under_its_filter(under_test: BusUnderTest):
    subject = under_test.subjects.api("get.shoot.ns.a.b")
    await under_test.another.serve("apiserver", "1.0.0", {under_test.subjects.api("get.>"): echo})

    response = await under_test.bus.request(subject, b"hello", headers={"Who": "me"})

    assert json.loads(response) == [subject, "hello", "me"]


async def test_nobody_there_is_unavailable_at_once(under_test: BusUnderTest):
    with pytest.raises(Unavailable):
        await under_test.bus.request(under_test.subjects.api("nobody"), b"", timeout_seconds=30)


async def test_an_answer_that_takes_too_long_is_unavailable(under_test: BusUnderTest):
    async def sleepy(request: Request) -> bytes:
        await asyncio.sleep(2)
        return b""

    await under_test.another.serve("apiserver", "1.0.0", {under_test.subjects.api("slow"): sleepy})
    with pytest.raises(Unavailable):
        await under_test.bus.request(under_test.subjects.api("slow"), b"", timeout_seconds=0.2)


async def test_a_slow_request_holds_up_no_other(under_test: BusUnderTest):
    release = asyncio.Event()

    async def handler(request: Request) -> bytes:
        if request.body == b"slow":
            await release.wait()
        return request.body

    subject = under_test.subjects.api("work")
    await under_test.another.serve("apiserver", "1.0.0", {subject: handler})
    slow = asyncio.create_task(under_test.bus.request(subject, b"slow"))
    await asyncio.sleep(0.05)

    assert await under_test.bus.request(subject, b"fast", timeout_seconds=HANG_SECONDS) == b"fast"
    release.set()
    assert await slow == b"slow"


async def test_what_a_handler_raises_is_answered(under_test: BusUnderTest):
    async def reject(request: Request) -> bytes:
        raise InvalidResource("spec.region is wrong", (FieldProblem("spec.region", "is wrong"),))

    subject = under_test.subjects.api("apply")
    await under_test.another.serve("apiserver", "1.0.0", {subject: reject})

    assert json.loads(await under_test.bus.request(subject, b"")) == {
        "ok": False,
        "error": {
            "code": 422,
            "reason": "Invalid",
            "message": "spec.region is wrong",
            "details": [{"field": "spec.region", "message": "is wrong"}],
        },
    }


async def test_a_crash_of_a_handler_is_answered_without_its_secrets(under_test: BusUnderTest):
    async def crash(request: Request) -> bytes:
        raise RuntimeError("password=1234")

    subject = under_test.subjects.api("apply")
    await under_test.another.serve("apiserver", "1.0.0", {subject: crash})

    error = json.loads(await under_test.bus.request(subject, b""))["error"]
    assert error["code"] == 500
    assert "1234" not in error["message"]


async def test_a_request_on_a_streams_subject_is_answered_by_the_stream(under_test: BusUnderTest):
    response = json.loads(await under_test.bus.request(under_test.subjects.apply, b"{}"))

    assert response == {"stream": under_test.stream("REQUESTS"), "seq": 1}
