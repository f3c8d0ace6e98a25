"""Requests to a real API server and to the landscape's: the same responses, or a difference that has its reason."""

from pathlib import Path

from tests.support.both_apis import both_apis
from tests.support.compared_requests import REQUESTS, comparable

LEAST_EQUAL = 100


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
