"""Two of the numbers that CONTRIBUTING.md states are counted: the files of a filter, and those of a loop.

Whatever imports the modules of all, or has their rows, is a file that somebody edits who adds another.
"""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import grimp
import pytest

from gardenbus.common.api.garden.scheduling_profiles import BUILT_IN_FILTERS
from gardenbus.common.api.queues import QUEUES
from gardenbus.controllermanager.app import LOOPS
from gardenbus.scheduling.filters.table import CHECKS
from gardenbus.scheduling.filters.table import FILTERS as FILTER_ROWS

ROOT = Path(__file__).parents[3]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
FILTERS = "gardenbus.scheduling.filters"
DOMAIN = "gardenbus.controllermanager.domain."
SHARED = frozenset({"table", "row", "context", "user_rows"})
"""Modules of the filters' package that are no filters."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def stated(row: str) -> int:
    """The number of files in a row of the page's table."""
    found = re.search(rf"^\| {row} \| (\d+) \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    return int(found[1])


def lists(graph: grimp.ImportGraph, modules: Iterable[str]) -> set[str]:
    """What imports all of some modules: where another one is added."""
    return set[str].intersection(*(graph.find_modules_that_directly_import(module) for module in modules))


def own_decisions(graph: grimp.ImportGraph, module: str) -> Iterable[str]:
    """What a reconciler decides by, and no other module outside of the domain."""
    for imported in graph.find_modules_directly_imported_by(module):
        if imported.startswith(DOMAIN):
            users = graph.find_modules_that_directly_import(imported)
            if not {user for user in users if not user.startswith(DOMAIN)} - {module}:
                yield imported


def test_a_filter_takes_as_many_files_as_the_page_says(graph: grimp.ImportGraph) -> None:
    """The filter, the table, and the names that no profile may disable."""
    filters = [each for each in graph.find_children(FILTERS) if each.rpartition(".")[2] not in SHARED]
    assert len(filters) > 10
    assert lists(graph, filters) == {f"{FILTERS}.table"}
    assert {row.name for row in (*FILTER_ROWS, *CHECKS)} <= set(BUILT_IN_FILTERS)
    assert 1 + len(lists(graph, filters)) + 1 == stated("filter")


def test_a_loop_takes_as_many_files_as_the_page_says(graph: grimp.ImportGraph) -> None:
    """The reconciler, its decision where it has one of its own, the list of loops, and the queue's row."""
    modules = {loop.build.__module__ for loop in LOOPS}
    decisions = [len([*own_decisions(graph, each)]) for each in modules]
    assert lists(graph, modules) == {"gardenbus.controllermanager.app"}
    assert all(loop.name in QUEUES for loop in LOOPS)
    assert 1 + max(decisions) + len(lists(graph, modules)) + 1 == stated("loop")
