"""A module in `requests` or `messages` handles something that has a row in a table.

Verbs of the API are rows of `common.api.verbs`, all else on the bus is a channel of `gardenbus.docs.channels`. The
requests of the Kubernetes API over HTTP have theirs in `kubeapi.web.application.Handlers`.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gardenbus.common.api.verbs import VERBS
from gardenbus.docs.channels import channels
from gardenbus.kubeapi.web.application import Handlers

ROOT = Path(__file__).parents[3]
ROOMS = ("requests", "messages")

WITHOUT_ROW: Mapping[str, str] = {
    "apiserver/requests/api": "dispatches all verbs",
    "apiserver/requests/shoot_census": "a part of the verb census",
    "identity/requests/callout": "NATS' own subject, which is none of ours",
    "kubeapi/requests/responses": "the types of the others",
}
"""Modules without a row, each with the reason."""


def handler_modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Every module of these rooms, as `<service>/<room>/<module>`."""
    for room in ROOMS:
        for path in sorted(root.glob(f"services/*/src/gardenbus/*/{room}/*.py")):
            if path.name != "__init__.py":
                yield f"{path.parts[-3]}/{room}/{path.stem}", path


def handles_verb(path: Path) -> bool:
    """True where a method is of the name of a verb."""
    verbs = {f"on_{name.replace('-', '_').replace('.', '_')}" for name in VERBS}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.AsyncFunctionDef) and node.name in verbs for node in ast.walk(tree))


def rows() -> set[str]:
    """Modules that rows name, as `<service>/<module>`."""
    over_http = [kind.__module__.split(".") for kind in Handlers.__annotations__.values()]
    return {f"{each.receiver}/{name}" for each in channels() for name in each.handlers} | {
        f"{module[1]}/{module[-1]}" for module in over_http if module[2] in ROOMS
    }


def without_row(root: Path) -> list[str]:
    """Modules that handle nothing that a table has."""
    named = rows()
    return [
        name
        for name, path in handler_modules(root)
        if name not in WITHOUT_ROW
        and f"{path.parts[-3]}/{path.stem}" not in named
        and not (name.startswith("apiserver/requests/") and handles_verb(path))
    ]


def test_each_module_of_requests_and_messages_has_a_row() -> None:
    assert without_row(ROOT) == []


def test_each_handler_of_a_row_is_a_module() -> None:
    modules = {f"{path.parts[-3]}/{path.stem}" for _, path in handler_modules(ROOT)}
    assert rows() <= modules
    assert WITHOUT_ROW.keys() <= {name for name, _ in handler_modules(ROOT)}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("services/apiserver/src/gardenbus/apiserver/requests/greetings.py", "async def on_greet(self): ..."),
        ("services/apiserver/src/gardenbus/apiserver/messages/greetings.py", "async def on_apply(self): ..."),
        ("services/scheduler/src/gardenbus/scheduler/requests/greetings.py", "class GreetingHandler: ..."),
        ("services/kubeapi/src/gardenbus/kubeapi/requests/greetings.py", "class Greetings: ..."),
    ],
)
def test_a_module_without_a_row_is_refused(tmp_path: Path, path: str, text: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(text)
    service, room = Path(path).parts[-3], Path(path).parts[-2]
    assert without_row(tmp_path) == [f"{service}/{room}/greetings"]


def test_a_module_with_the_method_of_a_verb_has_its_row(tmp_path: Path) -> None:
    path = tmp_path / "services/apiserver/src/gardenbus/apiserver/requests/greetings.py"
    path.parent.mkdir(parents=True)
    path.write_text("class Greetings:\n    async def on_can_i(self): ...\n")
    assert without_row(tmp_path) == []
