"""Requirements of shoots: what is stated, over the defaults of a project, and what is wrong with it."""

import pytest

from gardenbus.common.api.garden.resource_amounts import allocatable_amounts, requested_amount
from gardenbus.common.api.garden.scheduling_requirements import (
    DEFAULTS,
    MOST_BYTES,
    REQUIREMENTS,
    RESOLVED,
    SchedulingRequirements,
    requirement_problems,
    resolve,
    resolved_of,
    resolved_requirements,
    with_resolved,
)
from gardenbus.common.api.garden.shoot_groups import (
    NO_GROUP_RULES,
    GroupRules,
    GroupTerm,
    PreferredGroupTerm,
    SpreadConstraint,
    group_lines,
)
from tests.support.builders import a_project, a_shoot

STATED = "requests: {cpu: '4', memory: 16Gi, example.com/lb: 2}"
PATH = f"metadata.annotations[{REQUIREMENTS}]"


def test_requests_are_resolved_to_canonical_json_in_units_of_account() -> None:
    assert resolve(STATED, None) == '{"requests":{"cpu":4000,"example.com/lb":2,"memory":17179869184}}'
    assert resolve('{"requests": {"memory": "16Gi", "example.com/lb": 2, "cpu": 4}}', None) == resolve(STATED, None)


def test_fields_of_a_shoot_replace_those_of_its_project_as_a_whole() -> None:
    assert resolve("requests: {cpu: 1}", STATED) == '{"requests":{"cpu":1000}}'
    assert resolve("{}", "requests: {cpu: 1}") == '{"requests":{"cpu":1000}}'
    assert resolve(None, "requests: {cpu: 1}") == '{"requests":{"cpu":1000}}'
    assert resolve("requests: {}", "requests: {cpu: 1}") is None
    assert resolve(None, None) is None


def test_priority_and_gates_are_the_shoots_own_and_resolved() -> None:
    text = "{priority: 7, schedulingGates: [{name: example.com/b}, {name: a}, {name: a}]}"
    resolved = resolve(text, "priority: 3")
    assert resolved == '{"priority":7,"schedulingGates":[{"name":"a"},{"name":"example.com/b"}]}'
    requirements = resolved_requirements({RESOLVED: resolved})
    assert (requirements.priority, requirements.gates) == (7, ("a", "example.com/b"))
    assert resolve("priority: 0", "priority: 3") is None
    problems = requirement_problems("{priority: 1, schedulingGates: [{name: a}]}", DEFAULTS)
    assert [each.message for each in problems] == ["is for shoots alone: a Project has no default of it"] * 2


def test_preferences_are_resolved_and_keep_nobody_off() -> None:
    text = """
    affinity: {shootAffinity: {preferred: [{weight: 70, group: db, topologyKey: region}]}}
    topologySpreadConstraints: [{group: web, topologyKey: seed, whenUnsatisfiable: ScheduleAnyway}]
    """
    rules = resolved_requirements({RESOLVED: resolve(text, None)}).group_rules
    assert rules == GroupRules(
        preferred_affinity=(PreferredGroupTerm(70, GroupTerm("db", "region")),),
        preferred_spread=(SpreadConstraint("web", "seed"),),
    )
    assert (rules.prefers, rules.concerned, rules.read, group_lines(rules)) == (True, (), ("db", "web"), ())


def test_a_text_with_problems_counts_as_none() -> None:
    assert resolve("requests: {cpu: many}", "requests: {cpu: 1}") == '{"requests":{"cpu":1000}}'


def test_a_shoot_is_resolved_with_its_projects_defaults_and_only_once() -> None:
    shoot = a_shoot(metadata={"annotations": {REQUIREMENTS: "requests: {cpu: 500m}"}})
    project = a_project("dev", metadata={"annotations": {DEFAULTS: "requests: {cpu: 1}"}})
    resolved = with_resolved(shoot, project)
    assert resolved_of(resolved) == SchedulingRequirements(requests=(("cpu", 500),))
    assert with_resolved(resolved, project) is resolved
    plain = a_shoot()
    assert with_resolved(plain, None) is plain
    without = with_resolved({**resolved, "metadata": {**plain["metadata"], "annotations": {RESOLVED: "{}"}}}, None)
    assert without["metadata"]["annotations"] == {}


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{", '{"requests": {"cpu": "4"}}', '{"requests": {"c p u": 4}}', "1"]
)
def test_what_admission_has_not_written_requires_nothing(text: str) -> None:
    assert resolved_requirements({RESOLVED: text}) == SchedulingRequirements()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("requests: {cpu: many}", ".requests.cpu: 'many' is not a quantity"),
        ("requests: {cpu: 0}", ".requests.cpu: 0 must be above 0"),
        ("requests: {cpu: -1}", ".requests.cpu: -1 must be above 0"),
        ("requests: {cpu: true}", ".requests.cpu: must be a quantity"),
        ("requests: {cpu: 1e30}", ".requests.cpu: 1e+30 is too large"),
        ("requests: {shoots: 2}", ".requests.shoots: every shoot requests one: leave it out"),
        ("requests: {'c p u': 2}", ".requests.c p u: is not the name of a resource"),
        ("requests: [cpu]", ".requests: must be a mapping"),
        (f"requests: {{{', '.join(f'r{number}: 1' for number in range(9))}}}", ".requests: must not have more than 8"),
        ("priority: high", ".priority: must be a whole number from -1000 to 1000000"),
        ("priority: 1000001", ".priority: must be a whole number from -1000 to 1000000"),
        ("schedulingGates: [a]", ".schedulingGates[0]: must be a mapping of name"),
        ("schedulingGates: [{name: 'a b'}]", ".schedulingGates[0].name: must be the name of a gate"),
        ("request: {cpu: 1}", ".request: no such field; there are requests, affinity"),
        (
            "affinity: {seedAffinity: {required: [{}]}}",
            ".affinity.seedAffinity.required[0]: must be a label selector that",
        ),
        ("affinity: {seedAffinity: {required: [x]}}", ".affinity.seedAffinity.required[0]: must be a mapping"),
        ("affinity: {seedAffinity: {required: {a: b}}}", ".affinity.seedAffinity.required: must be a list"),
        ("affinity: {seedAffinity: {needed: []}}", ".affinity.seedAffinity.needed: no such field; there are required"),
        ("affinity: {podAffinity: {}}", ".affinity.podAffinity: no such field; there are seedAffinity"),
        ("affinity: []", ".affinity: must be a mapping"),
        (
            "affinity: {seedAffinity: {preferred: [{weight: 0, preference: {matchLabels: {a: b}}}]}}",
            ".affinity.seedAffinity.preferred[0].weight: must be a whole number from 1 to 100",
        ),
        (
            "affinity: {seedAffinity: {preferred: [{weight: 1}]}}",
            ".affinity.seedAffinity.preferred[0].preference: must be a mapping",
        ),
        (
            "affinity: {seedAffinity: {required: [{matchExpressions: [{key: a, operator: Near}]}]}}",
            ".affinity.seedAffinity.required[0]: matchExpressions[0].operator",
        ),
        (
            f"affinity: {{seedAffinity: {{required: [{', '.join(['{matchLabels: {a: b}}'] * 9)}]}}}}",
            ".affinity.seedAffinity.required: must not have more than 8 entries",
        ),
        ("groups: db", ".groups: must be a list"),
        ("groups: [a, b, c, d, e]", ".groups: must not have more than 4 entries"),
        ("groups: [Db]", ".groups[0]: must be the name of a group"),
        ("groups: ['*']", '.groups[0]: a hard rule needs a named group, not "*"'),
        (
            "topologySpreadConstraints: [{group: '*', topologyKey: seed}]",
            '.topologySpreadConstraints[0].group: a hard rule needs a named group, not "*"',
        ),
        (
            "topologySpreadConstraints: [{group: db, topologyKey: seed, maxSkew: 0}]",
            ".topologySpreadConstraints[0].maxSkew: must be a whole number from 1 to",
        ),
        (
            "topologySpreadConstraints: [{group: db, topologyKey: seed, minDomains: '2'}]",
            ".topologySpreadConstraints[0].minDomains: must be a whole number from 1 to",
        ),
        (
            "topologySpreadConstraints: [{group: db, topologyKey: seed, whenUnsatisfiable: Never}]",
            ".topologySpreadConstraints[0].whenUnsatisfiable: must be DoNotSchedule or ScheduleAnyway",
        ),
        (
            "topologySpreadConstraints: [{group: a, topologyKey: a, minDomains: 2, whenUnsatisfiable: ScheduleAnyway}]",
            ".topologySpreadConstraints[0].minDomains: has an effect with DoNotSchedule only",
        ),
        (
            "affinity: {shootAffinity: {preferred: [{group: db, topologyKey: seed}]}}",
            ".affinity.shootAffinity.preferred[0].weight: must be a whole number from 1 to 100",
        ),
        (
            "affinity: {shootAntiAffinity: {preferred: [{weight: 5, group: '*', topologyKey: seed}]}}",
            '.affinity.shootAntiAffinity.preferred[0].group: must be a named group, not "*"',
        ),
        (
            "topologySpreadConstraints: [{group: db, topologyKey: seed, fullDomains: Maybe}]",
            ".topologySpreadConstraints[0].fullDomains: must be Count or Ignore",
        ),
        (
            "topologySpreadConstraints: [{group: db, topologyKey: 'a b'}]",
            ".topologySpreadConstraints[0].topologyKey: must be seed, region, provider, or the key of a label",
        ),
        (
            "topologySpreadConstraints: [{group: db, topologyKey: seed, labelSelector: {}}]",
            ".topologySpreadConstraints[0].labelSelector: no such field; there are group, topologyKey",
        ),
        (
            "affinity: {shootAffinity: {required: [{group: '*', topologyKey: seed}]}}",
            '.affinity.shootAffinity.required[0].group: a hard rule needs a named group, not "*"',
        ),
        (
            "affinity: {shootAntiAffinity: {required: [{group: db}]}}",
            ".affinity.shootAntiAffinity.required[0].topologyKey: must be seed, region, provider",
        ),
        ("affinity: {shootAntiAffinity: [x]}", ".affinity.shootAntiAffinity: must be a mapping of required"),
        ("- requests", ": must be a mapping"),
        ("requests: {cpu: 1", ": is neither YAML nor JSON"),
        ("requests: {cpu: 1, cpu: 2}", ": is neither YAML nor JSON"),
        ("a: &a [x]\nb: !!python/object:os.system []", ": is neither YAML nor JSON"),
        ("requests: {}\n---\nrequests: {}", ": is neither YAML nor JSON"),
        (f"# {'x' * MOST_BYTES}", f": must be a text of at most {MOST_BYTES} bytes"),
    ],
)
def test_what_cannot_be_meant_is_named_with_its_path(text: str, problem: str) -> None:
    found = [f"{each.field}: {each.message}" for each in requirement_problems(text, REQUIREMENTS)]
    assert any(each.startswith(f"{PATH}{problem}") for each in found), found


def test_an_affinity_is_resolved_and_read_back() -> None:
    stated = """
    affinity:
      seedAffinity:
        required: [{matchLabels: {tier: gold}}, {matchExpressions: [{key: env, operator: In, values: [prod]}]}]
        preferred: [{weight: 80, preference: {matchLabels: {rack: "7"}}}]
    """
    text = resolve(stated, "requests: {cpu: 1}")
    assert text is not None
    found = resolved_requirements({RESOLVED: text})
    assert found.requests == (("cpu", 1000),)
    assert list(map(str, found.required_seeds)) == ["tier=gold", "env in (prod)"]
    assert [(each.weight, str(each.preference)) for each in found.preferred_seeds] == [(80, "rack=7")]
    assert resolve("affinity: {seedAffinity: {required: []}}", None) is None


def test_rules_between_shoots_are_resolved_and_read_back() -> None:
    stated = """
    groups: [web, pair-a, web]
    affinity:
      shootAffinity: {required: [{group: db, topologyKey: region}]}
      shootAntiAffinity:
        required: [{group: pair-a, topologyKey: seed}, {group: pair-a, topologyKey: example.com/rack}]
    topologySpreadConstraints:
    - {group: web, topologyKey: region, maxSkew: 2, minDomains: 3, fullDomains: Ignore}
    - {group: web, topologyKey: seed}
    """
    text = resolve(stated, None)
    assert text is not None
    assert resolve(text, None) == text
    rules = resolved_requirements({RESOLVED: text}).group_rules
    assert rules == GroupRules(
        groups=("pair-a", "web"),
        affinity=(GroupTerm("db", "region"),),
        anti_affinity=(GroupTerm("pair-a", "seed"), GroupTerm("pair-a", "example.com/rack")),
        spread=(SpreadConstraint("web", "region", 2, 3, ignores_full=True), SpreadConstraint("web", "seed")),
    )
    assert group_lines(rules) == ("db 0 ", "pair-a 1 example.com/rack,seed", "web 1 ")
    assert resolved_requirements({RESOLVED: '{"requests":{"cpu":1}}'}).group_rules is NO_GROUP_RULES
    assert resolve("groups: []", "groups: [db]") is None


def test_requests_are_rounded_up_and_what_is_allocatable_down() -> None:
    assert requested_amount("cpu", "1.0001") == 1001
    assert requested_amount("memory", "1500m") == 2
    assert requested_amount("example.com/lb", 0.1) == 1
    stated = {
        "cpu": "1.9999",
        "memory": "1500m",
        "shoots": "5",
        "bad": "x",
        "worse": None,
        "e.com/lb": 3,
        "a b": 1,
    }
    assert allocatable_amounts(stated, ("shoots",)) == {"cpu": 1999, "memory": 1, "e.com/lb": 3}
