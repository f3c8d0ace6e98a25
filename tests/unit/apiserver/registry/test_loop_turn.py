"""A request that takes long lets others in."""

import asyncio
from collections.abc import Awaitable

import pytest

from gardenbus.apiserver.registry import loop_turn
from gardenbus.apiserver.registry.loop_turn import HELD_SECONDS, LoopTurn
from tests.support.authorized_apiserver import a_secret, two_projects


async def turns_of_others(work: Awaitable[object]) -> int:
    """Turns that another task gets while some work is done."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    await asyncio.sleep(0)
    await work
    counting.cancel()
    return turns


async def test_the_loop_is_given_back_once_it_was_held_for_long() -> None:
    now = 0.0
    turn = LoopTurn(lambda: now)
    now += HELD_SECONDS / 2
    assert await turns_of_others(turn.let_others_in()) == 0
    now += HELD_SECONDS
    assert await turns_of_others(turn.let_others_in()) == 1
    assert await turns_of_others(turn.let_others_in()) == 0


async def test_others_are_let_in_between_the_manifests_of_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    landscape = await two_projects()
    documents = [a_secret(f"new-{number}") for number in range(10)]
    manifest = {"apiVersion": "v1", "kind": "List", "items": documents}
    monkeypatch.setattr(loop_turn, "HELD_SECONDS", 1e9)
    together = await turns_of_others(landscape.response("adam", "apply", manifest))
    monkeypatch.setattr(loop_turn, "HELD_SECONDS", 0.0)
    assert await turns_of_others(landscape.response("adam", "apply", manifest)) >= together + len(documents)
