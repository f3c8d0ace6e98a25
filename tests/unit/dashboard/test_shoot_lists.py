"""Lists of shoots stay in order while they change, and say what looking again would."""

import itertools
import random

import pytest

from gardenbus.common.api.garden.rows import ShootRow, shoot_row
from gardenbus.common.api.keys import ObjectKey
from gardenbus.dashboard.domain.shoot_query import ORDERS, ShootQuery, page_of, select_rows
from gardenbus.dashboard.watch.shoot_lists import ShootLists
from tests.support.builders import a_seed, a_shoot
from tests.support.dashboards import Dashboard


class Lists:
    """Shoots that come, change and go."""

    def __init__(self, seconds_a_search: float = 0.0) -> None:
        self.table: dict[ObjectKey, ShootRow] = {}
        self.now = 0.0
        self.seconds_a_search = seconds_a_search
        self.lists = ShootLists(self.table, self.clock)

    def clock(self) -> float:
        self.now += self.seconds_a_search
        return self.now

    def put(self, name: str, **spec: str) -> None:
        key, row = ObjectKey("shoot", "garden-dev", name), shoot_row(a_shoot(name, spec=spec))
        old = self.table.get(key)
        self.table[key] = row
        self.lists.changed(old, row)

    def remove(self, name: str) -> None:
        self.lists.changed(self.table.pop(ObjectKey("shoot", "garden-dev", name)), None)

    def names(self, *, sort: str = "namespace", region: str = "") -> list[str]:
        return [row.name for row in self.lists.page(ShootQuery(sort=sort, region=region)).rows]


@pytest.mark.parametrize("are_kept", [False, True])
async def test_every_order_is_that_of_sorting_anew(are_kept: bool):
    chosen, lists = random.Random(7), Lists()
    for number in range(300):
        lists.put(f"s{chosen.randrange(80)}", region=f"r{chosen.randrange(3)}", seedName=f"seed-{number % 4}")
        if are_kept and number == 100:
            await lists.lists.keep_all_orders()
    for number in range(0, len(lists.table), 3):
        lists.remove(sorted(lists.table)[number // 3].name)
    for name, sign, region, words in itertools.product(
        ORDERS, ("", "-"), ("", "r1"), ("", "s1", "dev/S2 r", "d-3 aws")
    ):
        query = ShootQuery(sort=sign + name, region=region, search=words, offset=3, limit=7)
        assert lists.lists.page(query) == page_of(select_rows(lists.table.values(), query), query)


async def test_shoots_that_change_while_orders_are_made_are_in_them_once():
    lists = Lists()
    for number in range(1200):
        lists.put(f"s{number:04}", region="eu")
    making = lists.lists.keep_all_orders().__await__()
    next(making)
    lists.put("s0000", region="us")
    lists.put("s1199", region="us")
    lists.put("new", region="us")
    lists.remove("s0600")
    for _ in making:
        pass
    assert lists.names(sort="-region")[:4] == ["s1199", "s0000", "new", "s1198"]
    assert lists.lists.page(ShootQuery(sort="name")).total == 1200


def test_a_quick_look_is_taken_again_after_each_change():
    lists = Lists()
    lists.put("one", region="eu")
    assert lists.names(region="eu") == ["one"]
    lists.put("two", region="eu")
    assert lists.names(region="eu") == ["one", "two"]


def test_a_look_that_takes_long_stands_for_a_while_and_its_rows_are_current():
    lists = Lists(seconds_a_search=1.0)
    lists.put("one", region="eu")
    assert lists.names(region="eu") == ["one"]
    lists.put("one", region="eu", seedName="aws-eu1")
    lists.put("two", region="eu")
    page = lists.lists.page(ShootQuery(region="eu"))
    assert [(row.name, row.seed) for row in page.rows] == [("one", "aws-eu1")]
    lists.now += 60
    assert lists.names(region="eu") == ["one", "two"]


async def test_filters_name_only_what_is_there():
    dashboard = Dashboard()
    dashboard.put(a_seed(), a_shoot("apollo", spec={"region": "eu-1"}), a_shoot("artemis", spec={"region": "eu-2"}))
    shown = (await dashboard.get("/api/places")).json()
    assert shown["namespaces"] == ["garden-dev"]
    dashboard.cache.remove(ObjectKey("shoot", "garden-dev", "artemis"))
    places = (await dashboard.get("/api/places")).json()["providers"]
    assert not any("eu-2" in regions for regions in places.values())
    assert any("eu-1" in regions for regions in places.values())


def test_rows_share_the_texts_that_are_equal():
    dashboard = Dashboard()
    dashboard.put(
        a_shoot("apollo", spec={"seedName": "aws-" + "eu1"}), a_shoot("artemis", spec={"seedName": "aws-eu1"})
    )
    one, other = dashboard.cache.shoots.values()
    assert one.seed is other.seed
    assert one.namespace is other.namespace


async def test_the_search_finds_a_name_with_its_namespace_and_kind():
    dashboard = Dashboard()
    dashboard.put(a_shoot("apollo"), a_shoot("artemis"), a_seed())
    for words, names in (("dev/ap", ["apollo"]), ("shoot art", ["artemis"]), ("seed", ["aws-eu1"]), ("ap x", [])):
        found = (await dashboard.get("/api/search?q=" + words.replace(" ", "%20"))).json()
        assert [each["name"] for each in found["items"]] == names, words


async def test_the_name_that_was_searched_for_comes_first_then_those_that_begin_so_however_many_contain_it():
    dashboard = Dashboard()
    dashboard.put(*(a_shoot(f"a-apo-{number:03}") for number in range(50)))
    dashboard.put(*(a_shoot(name) for name in ("zapo", "apollo", "apo")))
    found = (await dashboard.get("/api/search?q=apo")).json()["items"]
    assert [each["name"] for each in found[:3]] == ["apo", "apollo", "a-apo-000"]
    assert len(found) == 40
    dashboard.cache.remove(ObjectKey("shoot", "garden-dev", "apo"))
    assert (await dashboard.get("/api/search?q=apo")).json()["items"][0]["name"] == "apollo"


@pytest.mark.parametrize("region", ["eu\n1", "eu\u20281", "eu\x1c1"])
def test_words_are_found_in_the_rows_that_have_them_whatever_stands_in_a_text(region: str):
    lists = Lists()
    for number in range(20):
        lists.put(f"s{number:02}", region=region if number < 3 else "us-1")
    for words, names in (("s05", ["s05"]), ("us-1", [f"s{number:02}" for number in range(3, 20)])):
        assert [row.name for row in lists.lists.page(ShootQuery(search=words)).rows] == names
