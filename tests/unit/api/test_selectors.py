from typing import Any

import pytest

from gardenbus.common.api.selectors import parse_selector

LABELS = {"env": "dev", "tier": "gold", "seed.gardener.cloud/region": "eu"}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values) or None}]}


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"matchLabels": None, "matchExpressions": None},
        {"matchLabels": {"env": "dev"}},
        {"matchLabels": {"env": "dev", "seed.gardener.cloud/region": "eu"}},
        expression("env", "In", "dev", "prod"),
        expression("env", "NotIn", "prod"),
        expression("missing", "NotIn", "prod"),
        expression("env", "Exists"),
        expression("missing", "DoesNotExist"),
        {"matchLabels": {"env": "dev"}, **expression("tier", "In", "gold")},
    ],
)
def test_labels_meet_the_selector(selector: dict[str, Any]) -> None:
    assert parse_selector(selector).matches(LABELS)


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"env": "prod"}},
        {"matchLabels": {"missing": ""}},
        expression("env", "In", "prod"),
        expression("missing", "In", "prod"),
        expression("env", "NotIn", "dev"),
        expression("missing", "Exists"),
        expression("env", "DoesNotExist"),
        {"matchLabels": {"env": "dev"}, **expression("tier", "In", "silver")},
    ],
)
def test_labels_do_not_meet_the_selector(selector: dict[str, Any]) -> None:
    assert not parse_selector(selector).matches(LABELS)


@pytest.mark.parametrize(
    ("selector", "path"),
    [
        (expression("env", "In"), r"matchExpressions\[0\]\.values"),
        (expression("env", "NotIn"), r"matchExpressions\[0\]\.values"),
        (expression("env", "Exists", "x"), r"matchExpressions\[0\]\.values"),
        (expression("env", "DoesNotExist", "x"), r"matchExpressions\[0\]\.values"),
        (expression("env", "Gt", "1"), r"matchExpressions\[0\]\.operator"),
        (expression("no/slashes/please", "Exists"), r"matchExpressions\[0\]\.key"),
        (expression("env", "In", "-bad-"), r"matchExpressions\[0\]\.values"),
        ({"matchLabels": {"": "x"}}, "matchLabels"),
        ({"matchLabels": {"env": "a b"}}, r"matchLabels: .env.: .a b. is not"),
        ({"matchLabels": {"env": 1}}, "not a label selector"),
        ({"matchExpressions": [{"operator": "In"}]}, "not a label selector"),
    ],
)
def test_an_invalid_selector_is_an_error_with_its_path(selector: dict[str, Any], path: str) -> None:
    with pytest.raises(ValueError, match=path):
        parse_selector(selector)


def test_a_selector_reads_as_kubectl_writes_it() -> None:
    selector = parse_selector({"matchLabels": {"tier": "gold"}, **expression("env", "In", "prod", "dev")})
    assert str(selector) == "env in (dev,prod),tier=gold"
