"""Rules between shoots straight from their words, on lists of placed shoots: slow, and sharing no code with ours."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Rules = dict[str, Any]
"""Requirements as a shoot states them."""

Labels = Mapping[str, Mapping[str, str]]
"""Of each seed its domain by topology key; none where it lacks the label."""


class Placed(NamedTuple):
    """A shoot with its rules, on a seed."""

    rules: Rules
    seed: str


def required(rules: Rules, kind: str) -> Sequence[Mapping[str, str]]:
    """The required terms of a kind."""
    return rules.get("affinity", {}).get(kind, {}).get("required", [])


def members_in(domain: str | None, key: str, group: str, others: Sequence[Placed], labels: Labels) -> int:
    """Members of a group in a domain."""
    here = [each for each in others if group in each.rules.get("groups", []) and labels[each.seed].get(key) == domain]
    return len(here) if domain is not None else 0


def broken_rule(rules: Rules, seed: str, others: Sequence[Placed], labels: Labels, open_seeds: Sequence[str]) -> str:
    """The first rule that a shoot would break on a seed, next to others; "" where it breaks none."""
    if _breaks_affinity(rules, seed, others, labels):
        return "shoot-affinity"
    if _breaks_anti_affinity(rules, seed, others, labels):
        return "shoot-anti-affinity"
    if any(_breaks_spread(each, rules, seed, others, labels, open_seeds) for each in _constraints(rules)):
        return "topology-spread"
    return ""


def _constraints(rules: Rules) -> Sequence[Mapping[str, Any]]:
    stated = rules.get("topologySpreadConstraints", [])
    return [each for each in stated if each.get("whenUnsatisfiable") != "ScheduleAnyway"]


def _breaks_affinity(rules: Rules, seed: str, others: Sequence[Placed], labels: Labels) -> bool:
    for term in required(rules, "shootAffinity"):
        group, key = term["group"], term["topologyKey"]
        domain = labels[seed].get(key)
        if domain is None:
            return True
        if members_in(domain, key, group, others, labels):
            continue
        anywhere = any(members_in(labels[each].get(key), key, group, others, labels) for each in labels)
        if anywhere or group not in rules.get("groups", []):
            return True
    return False


def _breaks_anti_affinity(rules: Rules, seed: str, others: Sequence[Placed], labels: Labels) -> bool:
    for term in required(rules, "shootAntiAffinity"):
        domain = labels[seed].get(term["topologyKey"])
        if domain is None or members_in(domain, term["topologyKey"], term["group"], others, labels):
            return True
    for other in others:
        for term in required(other.rules, "shootAntiAffinity"):
            domain = labels[seed].get(term["topologyKey"])
            is_near = domain is not None and labels[other.seed].get(term["topologyKey"]) == domain
            if is_near and term["group"] in rules.get("groups", []):
                return True
    return False


def _breaks_spread(
    constraint: Mapping[str, Any],
    rules: Rules,
    seed: str,
    others: Sequence[Placed],
    labels: Labels,
    open_seeds: Sequence[str],
) -> bool:
    group, key = constraint["group"], constraint["topologyKey"]
    domain = labels[seed].get(key)
    if domain is None:
        return True
    counting = open_seeds if constraint.get("fullDomains") == "Ignore" else list(labels)
    domains = {labels[each][key] for each in counting if key in labels[each]}
    least = min((members_in(each, key, group, others, labels) for each in domains), default=0)
    if len(domains) < constraint.get("minDomains", 1):
        least = 0
    with_it = members_in(domain, key, group, others, labels) + (group in rules.get("groups", []))
    return with_it - least > constraint.get("maxSkew", 1)
