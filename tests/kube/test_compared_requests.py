"""Requests to a real API server and to the landscape's: the same responses, or a difference that has its reason."""

import json
from pathlib import Path

from tests.support.both_apis import both_apis
from tests.support.compared_kinds import DIFFERENCES, definition_of, needed, objects, path_of, reason_of, requests_for
from tests.support.compared_requests import JSON, NAMESPACE, NAMESPACES, REQUESTS, comparable

LEAST_EQUAL = 100
LEAST_EQUAL_OF_KINDS = 200


async def test_requests_have_the_responses_of_a_real_api_server_or_a_reason_why_not(
    tmp_path: Path, binaries: str
) -> None:
    unexplained: list[str] = []
    equal = 0
    async with both_apis(tmp_path, binaries) as both:
        for request in REQUESTS:
            responses = await both.send(request.method, request.path, request.sent, request.headers)
            wanted, found = (comparable(*response) for response in responses)
            equal += wanted == found
            if (wanted == found) is bool(request.differs):
                unexplained.append(f"{request.method} {request.path} {request.body}: {found}, not {wanted}")
    assert not unexplained, "\n".join(unexplained)
    assert equal > LEAST_EQUAL


async def test_requests_for_gardeners_kinds_have_the_responses_that_their_definitions_would_give(
    tmp_path: Path, binaries: str
) -> None:
    unexplained: list[str] = []
    equal, reasons = 0, set[str]()
    async with both_apis(tmp_path, binaries) as both:
        await both.send("POST", NAMESPACES, json.dumps({"metadata": {"name": NAMESPACE}}), {"Content-Type": JSON})
        await both.store(needed())
        for document in objects():
            await both.define(definition_of(document), path_of(document))
            for request in requests_for(document):
                responses = await both.send(request.method, request.path, request.sent, request.headers)
                wanted, found = (comparable(*response) for response in responses)
                equal += wanted == found
                reason = "" if wanted == found else reason_of(request)
                reasons.add(reason)
                if wanted != found and not reason:
                    unexplained.append(f"{request.method} {request.path} {request.body}: {found}, not {wanted}")
    assert not unexplained, "\n".join(unexplained)
    assert equal > LEAST_EQUAL_OF_KINDS
    assert reasons - {""} == {*DIFFERENCES}
