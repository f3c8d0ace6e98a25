"""Scores and choice straight from their rules, on plain values: slow, in fractions, and sharing no code with ours."""

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any

Args = Mapping[str, Any]


class NaiveSeed:
    """A seed with what is allocatable and used there, and what scores read."""

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        self.name = name
        self.allocatable: Mapping[str, int] = given.get("allocatable", {})
        self.used: Mapping[str, int] = given.get("used", {})
        self.labels: Mapping[str, str] = given.get("labels", {})
        self.annotations: Mapping[str, str] = given.get("annotations", {})
        self.zones: int = given.get("zones", 1)
        self.distance: int | None = given.get("distance", 0)
        self.rank: int = given.get("rank", 0)

    def has_room(self, requests: Mapping[str, int]) -> bool:
        for name, amount in requests.items():
            if name == "shoots" and name not in self.allocatable:
                continue
            if self.used.get(name, 0) + amount > self.allocatable.get(name, 0):
                return False
        return True


def _share(seed: NaiveSeed, name: str, amount: int) -> Fraction:
    return Fraction(100 * (seed.used.get(name, 0) + amount), seed.allocatable[name])


def _counting(args: Sequence[Mapping[str, Any]], seed: NaiveSeed, requests: Mapping[str, int]) -> list[tuple[str, int]]:
    return [
        (each["name"], each.get("weight", 1))
        for each in args
        if requests.get(each["name"]) is not None and seed.allocatable.get(each["name"], 0) > 0
    ]


def fit(args: Args, seed: NaiveSeed, requests: Mapping[str, int]) -> int:
    strategy = args["scoringStrategy"]
    points: list[tuple[int, int]] = []
    for name, weight in _counting(strategy["resources"], seed, requests):
        share = _share(seed, name, requests[name])
        if strategy["type"] == "LeastAllocated":
            score = floor(100 - share) if share <= 100 else 0
        elif strategy["type"] == "MostAllocated":
            score = floor(min(share, 100))
        else:
            score = shape(strategy["shape"], floor(min(share, 100)))
        points.append((score, weight))
    total = sum(weight for _, weight in points)
    return floor(Fraction(sum(score * weight for score, weight in points), total)) if total else 0


def shape(points: Sequence[Mapping[str, int]], share: int) -> int:
    if share <= points[0]["utilization"]:
        return points[0]["score"] * 10
    for left, right in pairwise(points):
        if share <= right["utilization"]:
            rise = Fraction(10 * (right["score"] - left["score"]), right["utilization"] - left["utilization"])
            return left["score"] * 10 + int(rise * (share - left["utilization"]))  # int() cuts towards zero
    return points[-1]["score"] * 10


def balance(args: Args, seed: NaiveSeed, requests: Mapping[str, int]) -> int:
    names = [name for name, _ in _counting(args["resources"], seed, requests)]
    if not names:
        return 0

    def evenness(added: int) -> int:
        if len(names) < 2:
            return 100
        shares = [
            min(seed.used.get(name, 0) + added * requests[name], seed.allocatable[name])
            * 10_000
            // seed.allocatable[name]
            for name in names
        ]
        mean = Fraction(sum(shares), len(shares))
        variance = floor(sum((share - mean) ** 2 for share in shares) / len(shares))
        root = 0
        while (root + 1) ** 2 <= variance:
            root += 1
        return (10_000 - root) // 100

    return 50 + floor(Fraction(50 + evenness(1) - evenness(0), 2))


def distance(farthest: int, seed: NaiveSeed) -> int:
    if seed.distance is None:
        return 0
    if farthest == 0:
        return 100
    return max(0, 100 - floor(Fraction(100 * max(seed.distance, 0), farthest))) if seed.distance < farthest else 0


def affinity(terms: Sequence[Mapping[str, Any]], seed: NaiveSeed) -> int:
    matched = sum(each["weight"] for each in terms if matches(each["preference"], seed.labels))
    total = sum(each["weight"] for each in terms)
    return floor(Fraction(100 * matched, total)) if total else 0


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    operators: Mapping[str, Callable[[str, list[str]], bool]] = {
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
        "Exists": lambda key, _: key in labels,
        "DoesNotExist": lambda key, _: key not in labels,
    }
    return all(
        operators[each["operator"]](each["key"], each.get("values", []))
        for each in selector.get("matchExpressions", [])
    )


def annotation(args: Args, seed: NaiveSeed) -> int:
    text = seed.annotations.get(args["annotation"], "")
    try:
        value = Fraction(text)
    except ValueError:
        return args.get("missing", 0)
    if "/" in text or "e" in text.lower() or (value * 1000).denominator != 1 or text != text.strip():
        return args.get("missing", 0)
    least, most = Fraction(str(args["min"])), Fraction(str(args["max"]))
    score = floor(100 * (min(max(value, least), most) - least) / (most - least))
    return 100 - score if args.get("reverse") else score


def zone_fit(seed: NaiveSeed, *, is_zonal: bool) -> int:
    return 100 if is_zonal or seed.zones < 3 else 0


def choose(sums: Mapping[str, int], seeds: Mapping[str, NaiveSeed], requests: Mapping[str, int]) -> str | None:
    """The nearest group with room, then the greatest sum, then the first by name."""
    left = [seed for name, seed in seeds.items() if name in sums and seed.has_room(requests)]
    return min(left, key=lambda seed: (seed.rank, -sums[seed.name], seed.name)).name if left else None


def of_groups(
    plugin: str,
    stated: Mapping[str, Any],
    labels: Mapping[str, Mapping[str, str]],
    seed: str,
    open_seeds: Collection[str],
    groups: Mapping[str, Mapping[str, int]],
) -> int:
    """ShootTopologySpread or InterShootAffinity of a seed; `labels` has its domains, `groups` members by seed."""

    def members(group: str, key: str, domain: str) -> int:
        return sum(count for each, count in groups.get(group, {}).items() if labels[each].get(key) == domain)

    if plugin == "ShootTopologySpread":
        soft = [
            each
            for each in stated.get("topologySpreadConstraints", [])
            if each.get("whenUnsatisfiable") == "ScheduleAnyway"
        ]
        points: list[int] = []
        for each in soft:
            group, key, skew = each["group"], each["topologyKey"], each.get("maxSkew", 1)
            domains = {labels[name][key] for name in open_seeds if key in labels[name]}
            least = min((members(group, key, domain) for domain in domains), default=0)
            here = labels[seed].get(key)
            points.append(0 if here is None else floor(Fraction(100 * skew, skew + members(group, key, here) - least)))
        return floor(Fraction(sum(points), len(points))) if points else 0
    terms = [
        (each["weight"], each["group"], each["topologyKey"], kind == "shootAffinity")
        for kind in ("shootAffinity", "shootAntiAffinity")
        for each in stated.get("affinity", {}).get(kind, {}).get("preferred", [])
    ]
    held = 0
    for weight, group, key, wants in terms:
        here = labels[seed].get(key)
        if here is not None and (members(group, key, here) > 0) == wants:
            held += weight
    weights = sum(weight for weight, *_ in terms)
    return floor(Fraction(100 * held, weights)) if weights else 0
