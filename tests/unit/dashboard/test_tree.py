"""The tree of what belongs to what."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import ShootRow, shoot_row
from gardenbus.common.api.keys import ObjectKey
from gardenbus.dashboard.domain.tree_nodes import TreeNode, is_troubled_shoot
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.watch.tree import MOST_CHILDREN, MOST_NODES, ObjectTree
from tests.support.builders import a_condition, a_seed, a_shoot
from tests.support.dashboards import Dashboard

SET: Document = {
    "kind": "ManagedSeedSet",
    "metadata": {"name": "grove", "namespace": "garden"},
    "spec": {"replicas": 2},
    "status": {"replicas": 2, "readyReplicas": 2},
}


def managed_seed(name: str, owner: str = "grove") -> Document:
    owners = [{"kind": "ManagedSeedSet", "name": owner, "controller": True}] if owner else []
    return {"kind": "ManagedSeed", "metadata": {"name": name, "namespace": "garden", "ownerReferences": owners}}


def on(seed: str, name: str, state: str = "Succeeded") -> Document:
    status = {"seedName": seed, "lastOperation": {"type": "Create", "state": state, "progress": 100}}
    return a_shoot(name, spec={"seedName": seed}, status=status)


def a_ready_seed(name: str) -> Document:
    return a_seed(name) | {"status": {"conditions": [a_condition("GardenletReady")], "allocatable": {"shoots": "50"}}}


def shown(node: TreeNode) -> list[str]:
    """Kind and name of each node, indented by its depth."""

    def lines(each: TreeNode, depth: int) -> Iterator[str]:
        for child in each.children or ():
            yield f"{'  ' * depth}{child.kind} {child.name}"
            yield from lines(child, depth + 1)

    return list(lines(node, 0))


def tree(dashboard: Dashboard, opened: set[ObjectKey] | None = None, closed: set[ObjectKey] | None = None) -> TreeNode:
    return ObjectTree(dashboard.cache).tree(opened or set(), closed or set())


def a_landscape(state: str = "Succeeded") -> Dashboard:
    dashboard = Dashboard()
    hosted = on("earth", "grove-0") | {"metadata": {"name": "grove-0", "namespace": "garden"}}
    dashboard.put(a_ready_seed("earth"), a_ready_seed("grove-0"), SET, managed_seed("grove-0"), hosted)
    dashboard.put(on("grove-0", "fine"), on("grove-0", "apollo", state), on("earth", "zeus"))
    return dashboard


def test_what_is_well_is_closed():
    assert shown(tree(a_landscape())) == ["managedseedset grove", "seed earth"]


def test_it_opens_at_what_is_not_well_which_comes_first():
    root = tree(a_landscape("Failed"))
    assert shown(root) == [
        "managedseedset grove",
        "  managedseed grove-0",
        "    shoot grove-0",
        "      seed grove-0",
        "        shoot apollo",
        "        shoot fine",
        "seed earth",
    ]
    assert root.troubles == 1
    grove, earth = root.children or [root, root]
    assert (grove.troubles, earth.troubles) == (1, 0)


def test_what_was_closed_stays_closed_and_what_was_opened_open():
    grove, earth = ObjectKey("managedseedset", "garden", "grove"), ObjectKey("seed", "", "earth")
    root = tree(a_landscape("Failed"), {earth}, {grove})
    assert shown(root) == ["managedseedset grove", "seed earth", "  shoot grove-0", "  shoot zeus"]


def test_a_seed_that_is_gone_and_one_that_never_came_are_in_it():
    dashboard = a_landscape()
    dashboard.cache.remove(ObjectKey("seed", "", "grove-0"))
    dashboard.cache.remove(ObjectKey("managedseed", "garden", "grove-0"))
    dashboard.put(managed_seed("grove-1"))
    root = tree(dashboard, {ObjectKey("managedseedset", "garden", "grove")})
    assert shown(root) == [
        "managedseedset grove",
        "  managedseed grove-1",
        "    shoot grove-1",
        "seed earth",
    ]


def test_a_shoot_that_recovers_or_moves_away_is_no_trouble_any_more():
    dashboard = a_landscape("Failed")
    dashboard.put(on("grove-0", "apollo"))
    assert tree(dashboard).troubles == 0
    dashboard.put(on("grove-0", "apollo", "Failed"))
    dashboard.put(on("earth", "apollo", "Failed"))
    assert [each.name for each in tree(dashboard).children or () if each.troubles] == ["earth"]
    dashboard.cache.remove(ObjectKey("shoot", "garden-dev", "apollo"))
    assert tree(dashboard).troubles == 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from(("", "x", "y")), st.sampled_from(("Succeeded", "Failed", ""))
        ),
        max_size=40,
    )
)
def test_troubles_are_always_those_of_the_shoots_that_are_there(steps: list[tuple[str, str, str]]):
    dashboard = Dashboard()
    for name, seed, state in steps:
        if state:
            dashboard.put(on(seed, name, state))
        else:
            dashboard.cache.remove(ObjectKey("shoot", "garden-dev", name))
        for each in "xy":
            expected = {
                key
                for key, row in dashboard.cache.shoots.items()
                if is_troubled_shoot(row) and each in (row.seed, row.actual_seed)
            }
            assert set(dashboard.cache.troubled_on(each)) == expected


class CountedShoots(dict[ObjectKey, ShootRow]):
    """Shoots that count how often one is read."""

    reads = 0

    def get(self, key: ObjectKey, default: Any = None) -> Any:
        self.reads += 1
        return super().get(key, default)

    def __getitem__(self, key: ObjectKey) -> ShootRow:
        self.reads += 1
        return super().__getitem__(key)

    def values(self) -> Any:
        raise AssertionError("all shoots were read")

    def items(self) -> Any:
        raise AssertionError("all shoots were read")

    def __iter__(self) -> Iterator[ObjectKey]:
        raise AssertionError("all shoots were read")


@pytest.mark.parametrize("shoots_a_seed", [5, 100])
def test_a_thousand_seeds_take_as_many_reads_however_many_shoots_they_have(shoots_a_seed: int):
    cache = DashboardCache()
    model = shoot_row(on("s", "x", "Failed"))
    healthy = shoot_row(on("s", "x"))
    for number in range(1_000):
        document = a_ready_seed(f"seed-{number:04}")
        cache.put(ObjectKey("seed", "", document["metadata"]["name"]), document, Dashboard().clock.now())
        for shoot in range(shoots_a_seed):
            name, seed = f"shoot-{number}-{shoot}", f"seed-{number:04}"
            row = model if shoot == 0 and number % 10 == 0 else healthy
            placed = msgspec.structs.replace(row, name=name, seed=seed, actual_seed=seed)
            cache.put_row(ObjectKey("shoot", "garden-dev", name), placed)
    counted = CountedShoots(cache.shoots)
    cache.shoots = counted
    root = ObjectTree(cache).tree(set(), set())
    nodes = len(shown(root))
    assert root.troubles == 100
    assert nodes <= MOST_NODES
    assert len(root.children or ()) == MOST_CHILDREN
    assert counted.reads <= MOST_NODES * MOST_CHILDREN / 10
    assert len(msgspec.json.encode(root)) < 200_000


async def test_pages_get_it_with_what_they_opened():
    dashboard = a_landscape()
    found = (await dashboard.get("/api/tree?open=seed._.earth")).json()
    names = [child["name"] for child in found["root"]["children"][1]["children"]]
    assert names == ["grove-0", "zeus"]
    for query, word in (("open=seed", "open:"), ("colour=red", "colour:"), ("offset=-1", "offset")):
        response = await dashboard.get(f"/api/tree?{query}")
        assert response.status == 400
        assert word in response.json()["error"]["message"]


async def test_works_of_a_binding_come_from_the_api():
    dashboard = Dashboard()
    await dashboard.serve_api()
    binding = {
        "kind": "ClusterResourceBinding",
        "metadata": {"name": "web-1", "labels": {"kubernetes-fleet.io/parent-CRP": "web"}},
        "spec": {"targetCluster": "east", "state": "Bound"},
    }
    dashboard.put(binding)
    work = {"kind": "Work", "metadata": {"name": "web-work"}, "status": {"conditions": [a_condition("Applied")]}}
    dashboard.replies["list.work.fleet-member-east"] = {"items": [work]}
    found = (await dashboard.get("/api/works/clusterresourcebinding/_/web-1")).json()
    assert [(each["name"], each["words"]) for each in found["items"]] == [("web-work", "applied")]
    assert dashboard.requests[-1][1]["labelSelector"] == "kubernetes-fleet.io/parent-resource-binding=web-1"
    assert (await dashboard.get("/api/works/clusterresourcebinding/_/none")).status == 404
