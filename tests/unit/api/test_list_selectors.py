"""Selectors as kubectl writes them."""

import pytest

from gardenbus.common.api.list_selectors import list_predicate
from gardenbus.common.errors import BadRequest
from tests.support.builders import a_shoot

GOLD = a_shoot("gold", metadata={"labels": {"tier": "gold", "env": "prod"}}, spec={"seedName": "aws-eu1"})
PLAIN = a_shoot("plain", metadata={"labels": {"env": "dev"}})


def chosen(**query: str) -> list[str]:
    chooses = list_predicate(query)
    assert chooses is not None
    return [shoot["metadata"]["name"] for shoot in (GOLD, PLAIN) if chooses(shoot)]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("tier=gold", ["gold"]),
        ("tier==gold,env=prod", ["gold"]),
        ("tier!=gold", ["plain"]),
        ("env in (dev, prod)", ["gold", "plain"]),
        ("env in (dev),!tier", ["plain"]),
        ("env notin (dev)", ["gold"]),
        ("tier", ["gold"]),
        ("!tier", ["plain"]),
        ("env=prod, tier in (gold,silver) ,env", ["gold"]),
    ],
)
def test_labels_select(selector: str, names: list[str]) -> None:
    assert chosen(labelSelector=selector) == names


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metadata.name=gold", ["gold"]),
        ("spec.seedName!=aws-eu1", ["plain"]),
        ("spec.seedName=", ["plain"]),
        ("spec.region=eu-west-1,metadata.name!=plain", ["gold"]),
        ("spec.region.deeper=x", []),
    ],
)
def test_fields_select(selector: str, names: list[str]) -> None:
    assert chosen(fieldSelector=selector) == names


def test_both_together_select_what_both_choose() -> None:
    assert chosen(labelSelector="env", fieldSelector="metadata.name=plain") == ["plain"]


def test_nothing_given_is_no_selection() -> None:
    assert list_predicate({}) is None


@pytest.mark.parametrize("selector", ["a b", "=x", "a in (b", "a=b,,c=d", "-a=b"])
def test_what_cannot_be_read_is_named(selector: str) -> None:
    with pytest.raises(BadRequest, match="labelSelector"):
        list_predicate({"labelSelector": selector})


def test_a_field_selector_needs_a_comparison() -> None:
    with pytest.raises(BadRequest, match="fieldSelector"):
        list_predicate({"fieldSelector": "metadata.name"})
