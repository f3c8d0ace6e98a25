"""No manifest keeps the event loop for long: a turn of its admission costs at most some readings of a mebibyte.

Each list and mapping that manifests have is filled to the most that is accepted, and beyond it. What one turn costs is
compared with the CPU that reading the largest message takes in the same run.
"""

import asyncio
import gc
import json
import time
from collections.abc import Awaitable

import pytest

from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.manifests.parser import parse
from tests.property.test_linear_time import LISTS, Entries, named, with_value
from tests.support.authorized_apiserver import two_projects

MOST = 4.0
"""Readings of the largest message in one turn: 20 ms each on a machine of 2024, half of it on a fast one."""

TRIES = 5
FILLED = (100, 200, 1000, 8000)
"""Entries of each list; those that are rejected cost a turn, too."""


def reading_seconds() -> float:
    """CPU of reading a message as large, and of as many values, as one may be."""
    body = encode(
        {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": "a"},
            "data": dict.fromkeys(named(32_000), "a" * 16),
        }
    )
    return min(_seconds(body) for _ in range(3))


def _seconds(body: bytes) -> float:
    began = time.process_time()
    parse(body)
    return time.process_time() - began


async def longest_turn(work: Awaitable[Document]) -> float:
    """CPU of the longest time for which no other task ran while some work was done."""
    longest, stopped = 0.0, False

    async def check() -> None:
        nonlocal longest
        last = time.thread_time()
        while not stopped:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, last = max(longest, now - last), now

    checking = asyncio.create_task(check())
    await asyncio.sleep(0)
    await work
    stopped = True
    await checking
    return longest


@pytest.mark.parametrize("row", [pytest.param(row, id=row[0]) for row in LISTS])
async def test_a_turn_of_admission_is_bounded_whatever_the_manifest(row: tuple[str, Document, str, Entries]) -> None:
    name, document, path, entries = row
    for number in FILLED:
        filled = json.loads(encode(with_value(document, path, entries(number, 0))))
        if "namespace" in filled["metadata"]:
            filled["metadata"]["namespace"] = "garden-dev"
        body = encode(filled)
        shares: list[float] = []
        while not shares or (shares[-1] > MOST and len(shares) < TRIES):
            landscape = await two_projects()
            gc.collect()
            shares.append(await longest_turn(landscape.response("root", "apply", body)) / reading_seconds())
        assert min(shares) <= MOST, f"{number} {name}: {', '.join(f'{each:.1f}' for each in shares)} readings"
