"""SECURITY.md names tests of each attack, and there are such tests."""

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ATTACKS = tuple(f"A{number}" for number in range(1, 20))
BAD_CASES = tuple(f"B{number}" for number in range(1, 23))
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
