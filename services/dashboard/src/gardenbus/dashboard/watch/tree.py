"""The tree of what belongs to what, made of the cache when somebody looks at it.

set → managed seed → shoot → seed → its shoots; a seed of its own → its shoots; placement → bindings. Troubles of a
seed's shoots are counted as shoots change (`DashboardCache.troubled_on`), so that the tree reads the sets, the seeds
and what it shows, however many shoots there are.
"""

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from gardenbus.common.api.keys import ObjectKey
from gardenbus.dashboard.domain.tree_nodes import (
    Tone,
    TreeNode,
    binding_state,
    placement_state,
    seed_state,
    set_state,
    shoot_state,
)
from gardenbus.dashboard.watch.landscape import DashboardCache

MOST_NODES = 400
"""Nodes in one tree."""

MOST_CHILDREN = 50
"""Children that are shown of one node: those that are not well first."""


class ObjectTree:
    """Trees of a cache."""

    def __init__(self, cache: DashboardCache) -> None:
        self._cache = cache

    def tree(self, opened: Collection[ObjectKey], closed: Collection[ObjectKey], *, offset: int = 0) -> TreeNode:
        """The root with what is open: what is named so, and what is not well, as far as there is room."""
        return self._root(offset).opened(opened, closed, [MOST_NODES])

    def _root(self, offset: int) -> "_Branch":
        cache = self._cache
        sets = [self._set(key) for key in sorted(cache.sets)]
        seeds = [self._seed(key.name) for key in sorted(cache.seeds) if cache.managed_seed_of(key.name) is None]
        placements = [self._placement(key) for key, _ in cache.fleet.placements()]
        first = _troubled_first([*sets, *seeds, *placements])
        node = TreeNode("", "", "", "good", "", sum(each.node.is_troubled for each in first), len(first))
        return _Branch(node, lambda: first[offset : offset + MOST_CHILDREN])

    def _set(self, key: ObjectKey) -> "_Branch":
        managed = self._cache.managed_seeds_of(key)
        troubles = sum(self._seed_troubles(each.name) for each in managed)
        return _branch(
            key,
            set_state(self._cache.sets[key]),
            troubles,
            len(managed),
            lambda: _troubled_first(self._managed_seed(each) for each in managed),
        )

    def _managed_seed(self, key: ObjectKey) -> "_Branch":
        row, shoot = self._cache.others[key], ObjectKey("shoot", key.namespace, key.name)
        tone, words = shoot_state(self._cache.shoots.get(shoot))
        state: tuple[Tone, str] = ("idle", "being deleted") if row.is_deleting else ("good", "")
        below = self._seed_troubles(key.name)
        hosted = _branch(shoot, (tone, words), below, 1, lambda: [self._seed(key.name)])
        return _branch(key, state, below + (tone == "bad"), 1, lambda: [hosted])

    def _seed_troubles(self, name: str) -> int:
        """Shoots of a seed that are not well, and the seed itself."""
        tone, _ = seed_state(self._cache.seeds.get(ObjectKey("seed", "", name)), 0)
        return len(self._cache.troubled_on(name)) + (tone in ("bad", "warn"))

    def _seed(self, name: str) -> "_Branch":
        cache, key = self._cache, ObjectKey("seed", "", name)
        state = seed_state(cache.seeds.get(key), cache.used(name))
        shoots, troubled = cache.shoots_on(name), cache.troubled_on(name)
        return _branch(key, state, len(troubled), len(shoots), lambda: self._shoots(shoots, troubled))

    def _shoots(self, shoots: Collection[ObjectKey], troubled: Collection[ObjectKey]) -> "list[_Branch]":
        first = heapq.nsmallest(MOST_CHILDREN, troubled)
        rest = (key for key in shoots if key not in troubled)
        keys = [*first, *heapq.nsmallest(MOST_CHILDREN - len(first), rest)]
        return [_branch(key, shoot_state(self._cache.shoots.get(key)), 0, 0, list) for key in keys]

    def _placement(self, key: ObjectKey) -> "_Branch":
        fleet = self._cache.fleet
        progress, bindings = fleet.progress_of(key), fleet.bindings_of(key)
        state = placement_state(fleet.tables[key.kind][key], progress.available, progress.selected)
        kind = "clusterresourcebinding" if key.kind.startswith("cluster") else "resourcebinding"
        below = [
            _branch(ObjectKey(kind, each.namespace, each.name), binding_state(each), 0, 0, list) for each in bindings
        ]
        return _branch(
            key, state, sum(each.node.is_troubled for each in below), len(below), lambda: _troubled_first(below)
        )


class _Branch:
    """A node, and its children when they are wanted."""

    def __init__(self, node: TreeNode, children: "Callable[[], Sequence[_Branch]]") -> None:
        self.node = node
        self._children = children

    def opened(self, opened: Collection[ObjectKey], closed: Collection[ObjectKey], room: list[int]) -> TreeNode:
        """The node, with its children if it is open; `room` is how many more nodes there may be."""
        key = self.node.key
        is_open = not self.node.kind or key in opened or (self.node.troubles > 0 and key not in closed)
        if not is_open or not self.node.below or room[0] <= 0:
            return self.node
        shown = self._children()[: min(MOST_CHILDREN, room[0])]
        room[0] -= len(shown)
        return msgspec.structs.replace(self.node, children=[each.opened(opened, closed, room) for each in shown])


def _branch(
    key: ObjectKey,
    state: tuple[Tone, str],
    troubles: int,
    below: int,
    children: "Callable[[], Sequence[_Branch]]",
) -> _Branch:
    return _Branch(TreeNode(key.kind, key.namespace, key.name, *state, troubles, below), children)


def _troubled_first(branches: Iterable[_Branch]) -> list[_Branch]:
    return sorted(branches, key=lambda each: not each.node.is_troubled)
