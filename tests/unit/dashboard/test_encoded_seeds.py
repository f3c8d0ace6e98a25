"""The list of all seeds is the same however its parts were encoded."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.keys import ObjectKey
from tests.support.builders import a_seed, a_shoot, merged
from tests.support.dashboards import Dashboard

AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
NAMES = ("a", "b", 'c"\\', "d")
STEPS = st.tuples(
    st.sampled_from(("change", "remove", "beat", "place", "look")), st.sampled_from(NAMES), st.integers(0, 3)
)


def a_seed_in(name: str, number: int) -> dict[str, Any]:
    return merged(a_seed(name), {"spec": {"provider": {"region": f"r{number}"}}})


async def listed(dashboard: Dashboard) -> list[Any]:
    return (await dashboard.get("/api/seeds")).json()["items"]


@given(st.lists(STEPS, max_size=12))
async def test_each_seed_is_listed_as_it_is_in_order_of_place_and_name(steps: list[tuple[str, str, int]]) -> None:
    dashboard = Dashboard()
    cache = dashboard.cache
    for step, name, number in (*steps, ("look", "", 0)):
        match step:
            case "change":
                dashboard.put(a_seed_in(name, number))
            case "remove":
                cache.remove(ObjectKey("seed", "", name))
            case "beat":
                cache.record_heartbeat(name, AT + timedelta(seconds=number))
            case "place":
                dashboard.put(a_shoot(f"s{number}", spec={"seedName": name}))
            case _:
                rows = sorted(cache.seeds.values(), key=lambda row: (row.provider, row.region, row.name))
                shown = [cache.shown_seed(row) for row in rows]
                assert await listed(dashboard) == [
                    {**each, "zones": [*each["zones"]], "taints": [*each["taints"]]} for each in shown
                ]


async def test_a_seed_that_did_not_change_is_not_encoded_again() -> None:
    dashboard = Dashboard()
    dashboard.put(*(a_seed_in(name, 0) for name in ("a", "b")))
    first = await listed(dashboard)
    kept = dict(dashboard.cache.encoded_seeds.kept)
    dashboard.put(a_seed_in("b", 1))
    second = await listed(dashboard)
    assert [row["region"] for row in (*first, *second)] == ["r0", "r0", "r0", "r1"]
    assert dashboard.cache.encoded_seeds.kept["a"] is kept["a"]
    assert dashboard.cache.encoded_seeds.kept["b"] is not kept["b"]
