"""Ownership: a module stands in a library because two members use it, transitively; else with the one that does.

Services, the client and `up` count as users, other libraries by their own users; the documentation, the benchmarks and
tests do not.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
LIBRARIES = {path.name for path in (ROOT / "libs").iterdir() if (path / "pyproject.toml").is_file()}
NO_USERS = {"bench", "docs"}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def member_of(module: str) -> str:
    return module.split(".")[1]


def users_of(graph: grimp.ImportGraph, module: str) -> set[str]:
    """Members outside of the libraries that use a module, by whatever way."""
    return {member_of(user) for user in graph.find_downstream_modules(module)} - LIBRARIES - NO_USERS


def of_one_user(graph: grimp.ImportGraph) -> Mapping[str, str]:
    """Modules of libraries without a second user, each with its user; a package is what its modules are."""
    found: dict[str, str] = {}
    for module in graph.modules:
        if member_of(module) in LIBRARIES and not graph.find_children(module):
            users = users_of(graph, module)
            if len(users) <= 1:
                found[module.removeprefix("gardenbus.")] = "".join(users)
    return found


def test_a_module_of_a_library_has_two_users(graph: grimp.ImportGraph) -> None:
    assert of_one_user(graph) == {}


def test_a_module_of_one_user_is_noticed() -> None:
    graph = grimp.ImportGraph()
    modules = ("common.shared", "common.inner", "common.lonely", "common.unused", "relay.app", "cli.main", "docs.pages")
    for module in modules:
        graph.add_module(f"gardenbus.{module}")
    for importer, imported in (
        ("relay.app", "common.shared"),
        ("cli.main", "common.shared"),
        ("common.shared", "common.inner"),
        ("relay.app", "common.lonely"),
        ("docs.pages", "common.lonely"),
    ):
        graph.add_import(importer=f"gardenbus.{importer}", imported=f"gardenbus.{imported}")
    assert of_one_user(graph) == {"common.lonely": "relay", "common.unused": ""}


def sizes() -> Mapping[str, int]:
    """Lines of source of each member."""
    return {
        str(source.parent.relative_to(ROOT)): sum(
            len(file.read_text(encoding="utf-8").splitlines()) for file in source.rglob("*.py")
        )
        for source in sorted((*ROOT.glob("*/*/src"), ROOT / "cli" / "src"))
    }


def test_the_size_of_every_member_is_printed() -> None:
    """Size is a smell that a reader follows, so it is shown (`pytest -rP`) and has no limit."""
    lines = sizes()
    for member, count in lines.items():
        print(f"{count:8,} {member}")
    print(f"{sum(lines.values()):8,} in all")
    assert len(lines) == len(PACKAGES)
    assert all(lines.values())
