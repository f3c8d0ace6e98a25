from typing import Any

import pytest

from gardenbus.cli.output.jsonpath import parse_path, parse_template, rendered, values_at
from gardenbus.common.errors import BadRequest

SHOOT: dict[str, Any] = {
    "kind": "Shoot",
    "metadata": {"name": "apollo", "labels": {"a.b/c": "yes", "plain": "too"}, "generation": 3},
    "spec": {"region": "eu-west-1", "zones": ["a", "b", "c"], "hibernation": {"enabled": False}},
    "status": {
        "conditions": [
            {"type": "APIServerAvailable", "status": "True", "n": 1},
            {"type": "EveryNodeReady", "status": "False", "n": 2, "reason": "Down"},
        ]
    },
}
LIST: dict[str, Any] = {"kind": "List", "items": [SHOOT, {"metadata": {"name": "bolt"}}]}


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        ("{.metadata.name}", "apollo"),
        ("{$.metadata.name}", "apollo"),
        (".metadata.name", "apollo"),
        ("metadata.name", "apollo"),
        ("{.metadata.generation}", "3"),
        ("{.spec.hibernation.enabled}", "false"),
        ("{.spec.hibernation}", '{"enabled":false}'),
        ("{.spec.zones}", '["a","b","c"]'),
        ("{.spec.zones[*]}", "a b c"),
        ("{.spec.zones[0]}", "a"),
        ("{.spec.zones[-1]}", "c"),
        ("{.spec.zones[9]}", ""),
        ("{.spec.zones[1:]}", "b c"),
        ("{.spec.zones[:-1]}", "a b"),
        ("{.spec.zones[0:3:2]}", "a c"),
        ("{.spec.zones[0,2]}", "a c"),
        ("{.metadata.labels['a.b/c']}", "yes"),
        ('{.metadata.labels["a.b/c"]}', "yes"),
        (r"{.metadata.labels.a\.b/c}", "yes"),
        ("{.metadata.labels['plain', 'a.b/c']}", "too yes"),
        ("{.metadata.labels.*}", "yes too"),
        ("{..type}", "APIServerAvailable EveryNodeReady"),
        ('{.status.conditions[?(@.type=="EveryNodeReady")].status}', "False"),
        ("{.status.conditions[?(@.type != 'EveryNodeReady')].status}", "True"),
        ("{.status.conditions[?(@.n>1)].type}", "EveryNodeReady"),
        ("{.status.conditions[?(@.n <= 1)].type}", "APIServerAvailable"),
        ("{.status.conditions[?(@.reason)].type}", "EveryNodeReady"),
        ('{.status.conditions[?(@.n=="1")].type}', ""),
        ('{.status.conditions[?(@.n<"x")].type}', ""),
        ("{.status.nothing.at.all}", ""),
        ("name: {.metadata.name}!", "name: apollo!"),
        (r'{.metadata.name}{"\t"}{.spec.region}{"\n"}', "apollo\teu-west-1\n"),
        (
            r"{range .status.conditions[*]}{.type}={.status}{'\n'}{end}",
            "APIServerAvailable=True\nEveryNodeReady=False\n",
        ),
        ("{range .spec.zones[*]}<{@}>{end}", "<a><b><c>"),
        ('{"}"}', "}"),
    ],
)
def test_a_template_prints_what_kubectl_prints(template: str, printed: str):
    assert rendered(parse_template(template), SHOOT) == printed


def test_ranges_stand_in_ranges():
    template = "{range .items[*]}{.metadata.name}:{range .spec.zones[*]} {@}{end};{end}"

    assert rendered(parse_template(template), LIST) == "apollo: a b c;bolt:;"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{.a", "no closing brace"),
        ("{range .a[*]}{.b}", "without its {end}"),
        ("{.a}{end}", "without a {range"),
        ("{.a[}", "a number, a quoted key"),
        ("{.a[1}", "] was expected"),
        ("{.a[x]}", "a number, a quoted key"),
        ("{.a[?(@.b==1 && @.c==2)]}", "one comparison a filter"),
        ("{.a[?(b==1)]}", "@.field"),
        ("{.a[?($.b==1)]}", "begin with @"),
        ("{.a[?(@.b=1)]}", "were expected"),
        ("{.a[::0]}", "a step of 0"),
        ("{.a[(@.length-1)]}", "functions and scripts are not known here"),
        ("{.a b}", "a path was expected"),
        ("{}", "a path was expected"),
    ],
)
def test_what_cannot_be_read_is_said(template: str, problem: str):
    with pytest.raises(BadRequest) as rejected:
        parse_template(template)

    assert problem in rejected.value.message
    assert rejected.value.message.startswith("jsonpath: ")


def test_a_path_leads_to_all_its_values():
    assert values_at(parse_path("{.items[*].metadata.name}"), LIST) == ["apollo", "bolt"]
    assert values_at(parse_path("{.}"), 3) == [3]
