"""Size of functions, and what stands in the rooms of a service."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = [
    path for folder in ("libs", "services", "cli", "tools") for path in sorted(ROOT.glob(f"{folder}/**/src/**/*.py"))
]
MOST_LINES = 50

RECONCILES = {"reconcile", "handle_batch"}
"""What the library calls: `common.controller`'s controller and queues the one, its batch consumer the other."""

VALUES = {"NamedTuple", "msgspec.Struct"}
IMPURE = re.compile(
    r"(aiohttp|asyncio|concurrent|http|logging|multiprocessing|nats|os|queue|random|redis|secrets|selectors|shutil|signal"
    r"|socket|ssl|structlog|subprocess|tempfile|threading|time|urllib\.request)(\.|$)"
    r"|gardenbus\.common\.(adapters|controller|runtime)\."
    r"|gardenbus\.diagnostics\.(bus_client|jetstream|target)\."
)
"""What waits, reads a clock or draws lots, and what would import that."""
ROOMS = re.compile(
    r"gardenbus\.common\.ports\.|gardenbus\.\w+\.(access|adapters|backend|clients|messages|metrics|registry|requests|store|watch)\."
)

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


def test_no_function_has_more_than_fifty_lines() -> None:
    assert len(SOURCES) > 800
    long = {
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}": lines_of(function)
        for path in SOURCES
        for function in functions(path)
        if lines_of(function) > MOST_LINES
    }
    assert long == {}


def test_a_docstring_does_not_count_and_a_signature_does() -> None:
    (function,) = ast.parse('def long(\n    a: int,\n) -> int:\n    """One.\n\n    Two.\n    """\n    return a\n').body
    assert isinstance(function, ast.FunctionDef)
    assert lines_of(function) == 4


def strangers(source: str) -> list[str]:
    """Classes of a module in `controllers` that reconcile nothing; private values of a reconciler are no strangers."""
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    found = [node.name for node in classes if not (reconciles(node) or is_private_value(node))]
    return found if any(map(reconciles, classes)) else [*found, "no reconciler"]


def reconciles(node: ast.ClassDef) -> bool:
    return any(isinstance(method, ast.AsyncFunctionDef) and method.name in RECONCILES for method in node.body)


def is_private_value(node: ast.ClassDef) -> bool:
    return node.name.startswith("_") and any(ast.unparse(base) in VALUES for base in node.bases)


@pytest.mark.parametrize(
    "room", sorted(ROOT.glob("services/*/src/gardenbus/*/controllers")), ids=lambda room: room.parts[-2]
)
def test_controllers_holds_reconcilers_alone(room: Path) -> None:
    modules = [path for path in room.rglob("*.py") if path.name != "__init__.py"]
    assert modules
    found = {path.name: strangers(path.read_text(encoding="utf-8")) for path in modules}
    assert not {name: classes for name, classes in found.items() if classes}


RECONCILER = "class R:\n    async def reconcile(self, key): ..."


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (RECONCILER, []),
        (f"class _Step(NamedTuple):\n    at: int\n{RECONCILER}", []),
        (f"class MaintenanceClock:\n    async def run(self): ...\n{RECONCILER}", ["MaintenanceClock"]),
        (f"class _Changes:\n    def changed(self): ...\n{RECONCILER}", ["_Changes"]),
        (f"class Deployer(Protocol):\n    def deploy(self): ...\n{RECONCILER}", ["Deployer"]),
        (f"class Ports(NamedTuple):\n    clock: int\n{RECONCILER}", ["Ports"]),
        ("class R:\n    def reconcile(self, key): ...", ["R", "no reconciler"]),
        ("def reconcile(key): ...", ["no reconciler"]),
    ],
)
def test_a_class_beside_a_reconciler_is_noticed(source: str, expected: list[str]) -> None:
    assert strangers(source) == expected


def imported_by(source: str) -> set[str]:
    """Names that a module imports, each with its module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def impurities(source: str) -> list[str]:
    """Imports of a module, and functions that wait, for which it cannot be called pure."""
    waits = [function.name for function in ast.walk(ast.parse(source)) if isinstance(function, ast.AsyncFunctionDef)]
    return sorted({name for name in imported_by(source) if IMPURE.match(name) and not is_declared_pure(name)}) + waits


def is_declared_pure(name: str) -> bool:
    """True for a name out of a module of ours whose docstring declares it pure."""
    return name.startswith("gardenbus.") and name.rpartition(".")[0] in DECLARED_PURE


def declares_purity(source: str) -> bool:
    """True where a module's docstring says so of all that is in it; a package's is about its modules."""
    declaration = re.compile(r"\b(Pure|PURE)\b(?!,? but)")
    return bool(declaration.search(source) and declaration.search(ast.get_docstring(ast.parse(source)) or ""))


def module_of(path: Path) -> str:
    return ".".join(path.parts[path.parts.index("src") + 1 :]).removesuffix(".py")


DECLARED_PURE = {
    module_of(path): path
    for path in SOURCES
    if path.name != "__init__.py" and declares_purity(path.read_text(encoding="utf-8"))
}


def test_what_is_called_pure_is_pure() -> None:
    assert len(DECLARED_PURE) > 50
    found = {module: impurities(path.read_text(encoding="utf-8")) for module, path in DECLARED_PURE.items()}
    assert not {module: names for module, names in found.items() if names}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from datetime import datetime", []),
        ("from gardenbus.common.adapters.redis.addresses import ServerAddress", []),
        (
            "from gardenbus.common.adapters.nats.micro_service import CONTROL",
            ["gardenbus.common.adapters.nats.micro_service.CONTROL"],
        ),
        ("import asyncio", ["asyncio"]),
        ("import os.path", ["os.path"]),
        ("async def wait(): ...", ["wait"]),
    ],
)
def test_what_is_not_pure_is_noticed(source: str, expected: list[str]) -> None:
    assert impurities(source) == expected


def test_a_module_is_declared_pure_without_exceptions() -> None:
    assert declares_purity('"""Names. Pure."""')
    assert declares_purity('"""PURE: names."""')
    assert not declares_purity('"""Names. Pure, but for `main`."""')
    assert not declares_purity("PURE = 1")


@pytest.mark.parametrize(
    "room",
    sorted(
        room
        for name in ("access", "clients", "messages", "requests")
        for room in ROOT.glob(f"services/*/src/gardenbus/*/{name}")
    ),
    ids=lambda room: "/".join(room.parts[-2:]),
)
def test_a_room_beside_domain_holds_nothing_that_belongs_into_domain(room: Path) -> None:
    """Such a module neither waits nor imports anything that does, nor a port of the library or another room.

    `watch` is not among them: a cache that a follower feeds has state, and may import nothing.
    """
    for path in room.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        uses = impurities(source) or [name for name in imported_by(source) if ROOMS.match(name)]
        assert uses or path.name == "__init__.py", f"{path.relative_to(ROOT)} is pure: it belongs into another room"
