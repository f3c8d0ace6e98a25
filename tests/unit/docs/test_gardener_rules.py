"""The table of Gardener's functions of validation holds against their list, and names modules that there are."""

import os
import re
from pathlib import Path

import pytest

import gardenbus.apiserver.domain.validation
from gardenbus.docs.gardener_rules import outcomes, results, version_and_functions

VALIDATION = Path(gardenbus.apiserver.domain.validation.__path__[0])
VERSION, FUNCTIONS = version_and_functions()
SOURCE = Path(os.environ.get("GOMODCACHE", Path.home() / "go/pkg/mod"), f"github.com/gardener/gardener@{VERSION}")


def test_each_function_has_one_result_and_each_result_a_function() -> None:
    listed = {(file, name) for file, names in FUNCTIONS.items() for name in names}
    assert len(listed) == len(list(outcomes()))
    assert {key for key in results() if key[1]} <= listed
    assert {file for file, name in results() if not name} == set(FUNCTIONS)


def test_each_rule_that_is_taken_over_is_in_a_module() -> None:
    for file, name, result in outcomes():
        if result.outcome.startswith("taken over"):
            assert (VALIDATION / f"{result.module}.py").is_file(), (file, name)
        else:
            assert not result.module, (file, name)


def test_whatever_differs_or_is_left_out_has_its_reason() -> None:
    for file, name, result in outcomes():
        assert bool(result.note) is (result.outcome != "taken over"), (file, name)


@pytest.mark.skipif(not SOURCE.is_dir(), reason="needs the source of Gardener in Go's module cache")
@pytest.mark.parametrize("file", FUNCTIONS)
def test_the_list_is_that_of_gardeners_source(file: str) -> None:
    source = (SOURCE / "pkg/api" / file).read_text()
    assert tuple(re.findall(r"^func (?:\([^)]*\) )?([A-Za-z0-9_]+)", source, re.MULTILINE)) == FUNCTIONS[file]
