"""The table of verbs and the apiserver's handlers are complete, each without the other there is nothing."""

import ast
from pathlib import Path

import pytest

from gardenbus.apiserver.requests.api import handlers_of
from gardenbus.common.api.verbs import VERBS, sent_by, subjects_of, verb_of

REQUESTS = Path(__file__).parents[3] / "services/apiserver/src/gardenbus/apiserver/requests"
NOT_OF_THE_API = {"__init__.py", "api.py", "own_consumers.py", "shoot_census.py"}
"""The dispatcher, requests for consumers, and a part of `census`."""


def methods(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("on_")
    }


def test_each_verb_has_one_handler_and_each_module_has_a_row() -> None:
    expected = {f"on_{name.replace('-', '_').replace('.', '_')}" for name in VERBS}
    found = {path.name: methods(path) for path in REQUESTS.glob("*.py") if path.name not in NOT_OF_THE_API}
    assert not [name for name, each in found.items() if not each]
    assert sorted(method for each in found.values() for method in each) == sorted(expected)


def test_a_verb_without_a_handler_or_with_two_ends_the_process_at_its_start() -> None:
    with pytest.raises(ValueError, match="unpack"):
        handlers_of(object())


def test_a_subject_names_its_verb_and_what_follows() -> None:
    assert verb_of("get.shoot.garden-dev.a.b") == (VERBS["get"], "shoot.garden-dev.a.b")
    assert verb_of("csr.create") == (VERBS["csr.create"], "")
    assert verb_of("census.shoot") == (VERBS["census"], "shoot")
    assert verb_of("csr") == (None, "")
    assert verb_of("") == (None, "")


def test_what_a_sender_may_send_is_made_of_the_rows() -> None:
    assert subjects_of("bootstrap") == ("csr.create", "csr.get")
    assert "token.create" in subjects_of("gardenlet")
    assert "token.create" not in subjects_of("member-agent")
    assert {"get.>", "list.>", "bind", "waiting.>", "retry.>"} <= {*subjects_of("scheduler")}
    assert "census.shoot" in subjects_of("dashboard")
    assert not sent_by("everybody") & {"apply", "bind", "csr.approve", "token.create"}
