"""SECURITY.md names tests of each attack, and there are such tests."""

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ATTACKS = tuple(f"A{number}" for number in range(1, 20))
BAD_CASES = tuple(f"B{number}" for number in range(1, 27))
_NAMED = re.compile(r"`(tests/[^`]+)`")
_ROW = re.compile(r"^\| ([AB]\d+) \| .+ \| (.+) \|$", re.MULTILINE)


def _rows() -> Mapping[str, list[str]]:
    """The tests of each row, as pytest names them."""
    found = _ROW.findall((ROOT / "SECURITY.md").read_text())
    assert len(dict(found)) == len(found), "a row stands there twice"
    return {name: re.findall(r"`(tests/[^`]+)`", tests) for name, tests in found}


@cache
def _tests_of(file: str) -> frozenset[str]:
    """Names of the tests in a file."""
    tree = ast.parse((ROOT / file).read_text())
    return frozenset(each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def test_each_attack_and_each_bad_case_has_a_row() -> None:
    assert tuple(_rows()) == (*ATTACKS, *BAD_CASES)


@pytest.mark.parametrize("name", [*ATTACKS, *BAD_CASES])
def test_each_row_names_tests_that_there_are(name: str) -> None:
    tests = _rows()[name]
    assert tests, f"{name} names no test"
    for each in tests:
        file, _, function = each.partition("::")
        assert function in _tests_of(file), f"{name}: {each} not found"


def _part(heading: str) -> str:
    """A section of the page."""
    return (ROOT / "SECURITY.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]


def test_each_row_of_what_is_protected_names_its_tests() -> None:
    rows = [row for row in _part("What is protected, and by what").splitlines() if row.startswith("| ")][1:]
    assert len(rows) == 5
    assert [row for row in rows if not _NAMED.search(row.rpartition(" | ")[2])] == []


PROMISES_NOTHING = (
    "- Whoever can read the state directory",
    "- `gardenbus up --insecure`",
    "- The services trust each other's",
    "- The Kubernetes API follows OBJECTS",
    "- With a NATS that `--nats-url` names",
)


def test_what_is_promised_beside_what_is_not_names_its_tests() -> None:
    points = [f"- {point}" for point in _part("What is not").strip().removeprefix("- ").split("\n- ")]
    promising = [point for point in points if not point.startswith(PROMISES_NOTHING)]
    assert len(points) == len(promising) + len(PROMISES_NOTHING)
    assert [point for point in promising if not _NAMED.search(point)] == []


def test_every_test_that_the_page_names_is_there() -> None:
    for named in _NAMED.findall((ROOT / "SECURITY.md").read_text()):
        file, _, function = named.partition("::")
        assert function in _tests_of(file), f"{named} not found"
