"""The graph of imports: no cycles of modules or packages, and no source imports the tests.

Imports for type checking are included.
"""

import tomllib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False, cache_dir=None)


def circular(imported: Mapping[str, set[str]]) -> list[str]:
    """Those that import themselves by way of others, or are imported and import on the way between such."""
    left = dict(imported)
    # Whoever imports nothing that is left, or is imported by nobody who is left, is part of no circle.
    while True:
        importers = set[str]().union(*left.values())
        outside = {name for name, targets in left.items() if not targets & left.keys() or name not in importers}
        if not outside:
            return sorted(left)
        for name in outside:
            del left[name]


def imports_of_siblings(graph: grimp.ImportGraph, package: str) -> Mapping[str, set[str]]:
    """For each child of a package, a module or a package with all below it, the other children that it imports."""
    child_of = {
        each: child for child in graph.find_children(package) for each in (child, *graph.find_descendants(child))
    }
    imported: dict[str, set[str]] = defaultdict(set)
    for module, child in child_of.items():
        targets = {child_of.get(target) for target in graph.find_modules_directly_imported_by(module)}
        imported[child] |= {target for target in targets if target is not None and target != child}
    return imported


def test_circles_are_found() -> None:
    assert circular({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == ["a", "b", "c"]
    assert circular({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_a_package_imports_what_any_of_its_modules_imports() -> None:
    graph = grimp.ImportGraph()
    for module in ("top", "top.one", "top.one.module", "top.two", "top.two.module", "top.three"):
        graph.add_module(module)
    graph.add_import(importer="top.one.module", imported="top.two")
    graph.add_import(importer="top.two.module", imported="top.one.module")
    graph.add_import(importer="top.three", imported="top")
    assert circular(imports_of_siblings(graph, "top")) == ["top.one", "top.two"]


def test_no_module_imports_itself_in_a_circle(graph: grimp.ImportGraph) -> None:
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imported) > 500
    assert circular(imported) == []


def test_no_packages_beside_each_other_import_each_other_in_a_circle(graph: grimp.ImportGraph) -> None:
    parents = sorted(module for module in graph.modules if graph.find_children(module))
    assert len(parents) > 50
    assert {parent: circle for parent in parents if (circle := circular(imports_of_siblings(graph, parent)))} == {}


def test_no_source_imports_the_tests() -> None:
    sources = [path for folder in ("libs", "services", "tools", "cli") for path in (ROOT / folder).rglob("src/**/*.py")]
    assert len(sources) > 500
    assert [path for path in sources if "tests.support" in path.read_text()] == []
