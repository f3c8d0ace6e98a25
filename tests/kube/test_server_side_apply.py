"""Server-side apply by several managers: what a real API server and the landscape's make of the same requests."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.both_apis import both_apis
from tests.support.managed_requests import A_NAMESPACE, Given, drawn, observed

SEQUENCES, REQUESTS = 120, 12
RECORDED = "GARDENBUS_RECORD_APPLIES"
"""File into which the responses of the real API server are written, for the test that needs none."""


@pytest.mark.slow
async def test_managers_come_by_the_same_fields_and_conflicts_as_on_a_real_api_server(
    tmp_path: Path, binaries: str
) -> None:
    recorded: list[list[Any]] = []
    async with both_apis(tmp_path, binaries) as both:

        async def sent(given: Given) -> list[tuple[int, Any]]:
            headers = {"Content-Type": given.content_type}
            responses = await both.send(given.method, given.path, json.dumps(given.body), headers)
            return [(each.code, json.loads(each.text)) for each in responses]

        assert [code for code, _ in await sent(A_NAMESPACE)] == [201, 201]
        for seed in range(SEQUENCES):
            chance = random.Random(seed)
            recorded.append([])
            for _ in range(REQUESTS):
                given = drawn(chance, f"map-{seed}")
                expected, found = (observed(*each) for each in await sent(given))
                recorded[-1].append((given, expected))
                assert found == expected, json.dumps(recorded[-1])
    if file := os.environ.get(RECORDED):
        Path(file).write_text(json.dumps(recorded[:20], separators=(",", ":")) + "\n")
