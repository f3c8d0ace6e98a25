from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.budgets import BUDGETS, LIMITS, Budget, Budgets, budgets_of, over_budget
from gardenbus.common.api.document import Document
from gardenbus.common.errors import InvalidResource


def a_config_map(budgets: str, **data: str) -> Document:
    metadata = {"name": BUDGETS.name, "namespace": BUDGETS.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"budgets": budgets, **data}}


def test_without_settings_everybody_has_the_default_budget() -> None:
    assert budgets_of(None) == budgets_of({"kind": "ConfigMap"}) == budgets_of(a_config_map("")) == Budgets()
    assert Budgets().of("ann", ("people",), ("dev",)) == Budget()


def test_each_limit_is_the_users_else_its_groups_else_its_projects_else_the_default() -> None:
    budgets = budgets_of(
        a_config_map(
            """
            default: {watches: 1, pages: 1, sessions: 1, connections: 1}
            projects: {dev: {watches: 2, pages: 2, sessions: 2}, ops: {sessions: 9}}
            groups: {people: {watches: 3, pages: 3}}
            users: {ann: {watches: 4}}
            """
        )
    )
    ann = budgets.of("ann", ("people", "others"), ("dev", "ops", "gone"))
    assert (ann.watches, ann.pages, ann.sessions, ann.connections) == (4, 3, 9, 1)
    assert budgets.of("bob", (), ("dev",)).sessions == 2
    assert budgets.of("bob").bytes_in_flight == Budget().bytes_in_flight


def test_of_several_groups_the_highest_limit_holds_whatever_their_order() -> None:
    budgets = budgets_of(a_config_map("groups: {a: {watches: 5}, b: {watches: 9}, c: {watches: 7}}"))
    assert budgets.of("ann", ("a", "b", "c")).watches == budgets.of("ann", ("c", "b", "a")).watches == 9


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_is_a_setting(name: str) -> None:
    assert getattr(budgets_of(a_config_map(f"default: {{{name}: 7}}")).default, LIMITS[name]) == 7


def test_bytes_are_quantities() -> None:
    assert budgets_of(a_config_map('{"default": {"bytesInFlight": "64Mi"}}')).default.bytes_in_flight == 64 * 2**20


@pytest.mark.parametrize(
    ("budgets", "problems"),
    [
        ("- a", {"data[budgets]": "must be a mapping"}),
        ("a: [", {"data[budgets]": "not YAML"}),
        ("user: {}", {"data[budgets].user": "no such field"}),
        ("users: [ann]", {"data[budgets].users": "must be a mapping"}),
        ("users: {ann: 5}", {"data[budgets].users[ann]": "must be a mapping, is 5"}),
        ("users: {ann: {watch: 5}}", {"data[budgets].users[ann].watch": "did you mean watches"}),
        ("default: {watches: 0}", {"data[budgets].default.watches": "must be from 1"}),
        ("default: {watches: true}", {"data[budgets].default.watches": "must be a whole number, is True"}),
        ("default: {watches: 1.5}", {"data[budgets].default.watches": "must be a whole number, is 1.5"}),
        ("default: {waitingBytes: lots}", {"data[budgets].default.waitingBytes": "is not a quantity"}),
        ("default: {waitingBytes: [1]}", {"data[budgets].default.waitingBytes": "must be a quantity such as 64Mi"}),
        ("default: {waitingBytes: 9Ei}", {"data[budgets].default.waitingBytes": "must be from 1"}),
        (
            "groups: {a: {watches: -1}}\nprojects: {b: {pages: x}}",
            {
                "data[budgets].groups[a].watches": "must be from 1",
                "data[budgets].projects[b].pages": "must be a whole number",
            },
        ),
    ],
)
def test_what_is_wrong_with_settings_is_named_field_by_field(budgets: str, problems: dict[str, str]) -> None:
    with pytest.raises(InvalidResource) as raised:
        validate(a_config_map(budgets), None)
    found: dict[str, Any] = {problem.field: problem.message for problem in raised.value.problems}
    assert found.keys() == problems.keys()
    for field, text in problems.items():
        assert text in found[field]


def test_an_entry_that_nothing_reads_is_rejected() -> None:
    with pytest.raises(InvalidResource, match=r"data\[ann\]: nothing reads it: budgets are in data\[budgets\]"):
        validate(a_config_map("default: {watches: 5}", ann="operator"), None)
    validate(a_config_map("default: {watches: 5}"), None)


def test_the_error_names_the_limit_its_value_and_the_remedy() -> None:
    error = over_budget("ann", "bytesInFlight", 2**25, "wait for responses")
    assert error.message == "'ann' has used up its budget of bytesInFlight (32Mi): wait for responses"
    assert (error.code, error.retry_after_seconds, error.limit) == (429, 1, "bytesInFlight")
