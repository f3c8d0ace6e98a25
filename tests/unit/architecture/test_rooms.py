"""Size of functions, and what stands in the rooms of a service."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = [
    path for folder in ("libs", "services", "cli", "tools") for path in sorted(ROOT.glob(f"{folder}/**/src/**/*.py"))
]
MOST_LINES = 40
MOST_SHIPPED_LINES = 60_000
"""Of services and client together: docs/decisions/0029."""

RECONCILES = {"reconcile", "handle_batch"}
"""What the library calls: `common.controller`'s controller and queues the one, its batch consumer the other."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def lines_of(function: Function) -> int:
    """Lines from `def` to the end, but for the docstring: that of a command is its help."""
    first = function.body[0]
    is_documented = ast.get_docstring(function) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if is_documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def test_no_function_has_more_than_forty_lines() -> None:
    assert len(SOURCES) > 800
    long = {
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}": lines_of(function)
        for path in SOURCES
        for function in functions(path)
        if lines_of(function) > MOST_LINES
    }
    assert long == {}


def test_services_and_client_stay_a_size_that_can_be_read() -> None:
    shipped = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in {"services", "cli"}]
    assert len(shipped) > 400
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in shipped) <= MOST_SHIPPED_LINES


def test_a_docstring_does_not_count_and_a_signature_does() -> None:
    (function,) = ast.parse('def long(\n    a: int,\n) -> int:\n    """One.\n\n    Two.\n    """\n    return a\n').body
    assert isinstance(function, ast.FunctionDef)
    assert lines_of(function) == 4


@pytest.mark.parametrize(
    "room", sorted(ROOT.glob("services/*/src/gardenbus/*/controllers")), ids=lambda room: room.parts[-2]
)
def test_controllers_holds_reconcilers_alone(room: Path) -> None:
    modules = [path for path in room.rglob("*.py") if path.name != "__init__.py"]
    assert modules
    for path in modules:
        methods = {
            method.name
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
            for method in node.body
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert methods & RECONCILES, f"{path.relative_to(ROOT)} has no reconciler: it belongs into another room"
