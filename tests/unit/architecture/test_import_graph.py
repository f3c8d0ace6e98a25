"""The graph of imports: no cycles, imports for type checking included, and no source imports the tests."""

import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[3]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False, cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imported) > 500
    # Whoever imports nothing that is left, or is imported by nobody who is left, is part of no circle.
    while True:
        importers = set[str]().union(*imported.values()) if imported else set[str]()
        outside = {m for m, targets in imported.items() if not targets & imported.keys() or m not in importers}
        if not outside:
            break
        for module in outside:
            del imported[module]
    assert sorted(imported) == []


def test_no_source_imports_the_tests() -> None:
    sources = [path for folder in ("libs", "services", "tools", "cli") for path in (ROOT / folder).rglob("src/**/*.py")]
    assert len(sources) > 500
    assert [path for path in sources if "tests.support" in path.read_text()] == []
