"""Simulation, store and naive scheduler count the same shoots on the same seeds, whatever spec and status name."""

import asyncio
import copy
import itertools
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.cli.simulate.scheduling import SimulatedAssignment, simulate, usage_after
from gardenbus.common.api.document import Document
from gardenbus.common.ports.store import SeedBinding
from tests.support import naive_scheduler
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

SEEDS = ("a", "b", "c")
COMBINATIONS = tuple(itertools.product((None, *SEEDS), repeat=2))
"""Every combination of a shoot's spec.seedName and status.seedName."""


@st.composite
def landscapes(draw: st.DrawFn) -> list[Document]:
    """Seeds of few places, and a shoot of every combination, some of them several times, in any order."""
    seeds = [a_seed(name, shoots=draw(st.integers(0, 14).map(str) | st.none())) for name in SEEDS]
    combinations = [*COMBINATIONS, *draw(st.lists(st.sampled_from(COMBINATIONS), max_size=8))]
    shoots = [
        a_shoot(f"shoot-{number}", spec={"seedName": wanted}, status={"seedName": actual})
        for number, (wanted, actual) in enumerate(combinations)
    ]
    return [*seeds, a_cloudprofile(), a_project(), *draw(st.permutations(shoots))]


@settings(max_examples=60, deadline=None)
@given(landscapes())
def test_simulation_store_and_naive_scheduler_agree_on_decisions_and_usage(documents: list[Document]) -> None:
    landscape = copy.deepcopy(documents)
    expected = naive_scheduler.schedule_all(landscape, "SameRegion")
    placements = simulate(documents)

    assert {placement.shoot: placement.seed for placement in placements} == expected
    usage = naive_scheduler.usage_of(landscape)
    assert usage_after(documents, placements) == usage
    assert asyncio.run(_usage_of_store(documents, placements)) == usage


async def _usage_of_store(documents: list[Document], placements: list[SimulatedAssignment]) -> dict[str, int]:
    """Usage once the store has the documents, with room on every seed, and the placements are bound."""
    store = MemoryStore(FakeClock())
    for document in documents:
        unlimited = document["kind"] == "Seed"
        await store.create(a_seed(document["metadata"]["name"], shoots=None) if unlimited else document)
    for placement in placements:
        if placement.seed is None:
            continue
        namespace, _, name = placement.shoot.partition("/")
        key = next(key for key in store.state.rows if (key.kind, key.namespace, key.name) == ("shoot", namespace, name))
        stored = store.state.rows[key].stored
        binding = SeedBinding(namespace, name, stored.uid, stored.generation, placement.seed, None)
        assert (await store.bind([binding])).outcomes == ["bound"]
    return +Counter((await store.usage()).seeds)
