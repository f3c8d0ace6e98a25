"""Plan of a run: which faults, on what, in which order. Pure: the same seed, kinds and targets give the same plan."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

MOST_IN_A_ROUND = 6
GARBAGE_SEEDS = 10_000
CLOCK_SHIFTS = (-3600.0, -300.0, -5.0, 5.0, 300.0, 3600.0)
CUT_OFF_FROM = ("everybody", "servers", "clients")
"""Whom a server of Redis is cut off from: `servers` are replicas, their primary, and Sentinels."""

PARTITIONS = ("alone", "one link")
"""How a server of NATS is cut off: from all others, or from one of them, while both see the third."""


class Fault(NamedTuple):
    """One fault: begun `after` seconds of its round, taken back after `seconds`."""

    kind: str
    target: str
    seconds: float = 0.0
    after: float = 0.0
    detail: str = ""

    @property
    def text(self) -> str:
        """The fault in one line."""
        return f"{self.kind} {self.target}{f' ({self.detail})' if self.detail else ''} {self.seconds:g} s"


class Targets(NamedTuple):
    """What can be hit. `lines` are connections between a process and a server, as `apiserver-1/redis`."""

    services: Sequence[str]
    servers: Sequence[str]
    lines: Sequence[str]
    roles: Sequence[str]
    strangers: Sequence[str]
    nodes: Sequence[str] = ()
    """Servers of a cluster, each with a copy of the data (`nats-1`); () where there is one server of each."""


class KindRule(NamedTuple):
    """How often a kind comes, for how long, and whether nothing else happens in its round."""

    weight: int
    least_seconds: float
    most_seconds: float
    is_alone: bool = False


KINDS: Mapping[str, KindRule] = {
    "kill": KindRule(30, 0.0, 0.0),
    "pause": KindRule(15, 0.5, 5.0),
    "cut": KindRule(15, 0.1, 4.0),
    "half-open": KindRule(10, 0.5, 5.0),
    "delay": KindRule(8, 1.0, 4.0),
    "clock": KindRule(8, 1.0, 4.0),
    "rolling": KindRule(4, 0.0, 0.0),
    "garbage": KindRule(6, 0.0, 0.0),
    "disk-full": KindRule(2, 1.0, 4.0, is_alone=True),
    "restore": KindRule(3, 0.0, 0.0, is_alone=True),
    "failover": KindRule(12, 5.0, 9.0),
    "partition": KindRule(10, 1.0, 8.0),
    "redis-partition": KindRule(10, 2.0, 12.0),
    "old-disk": KindRule(4, 0.0, 0.0, is_alone=True),
}
"""All kinds of faults. `restore` hits a single server, the last four those of a cluster."""

DETAILS: Mapping[str, Sequence[str]] = {
    "cut": ("reset", "closed"),
    "delay": ("0.02", "0.1", "0.3"),
    "clock": tuple(f"{shift:+g}" for shift in CLOCK_SHIFTS),
    "restore": ("older", "empty"),
    "old-disk": ("older", "empty"),
    "redis-partition": CUT_OFF_FROM,
    "failover": ("REQUESTS", "REPORTS", "OBJECTS", "QUEUES"),
    "partition": PARTITIONS,
}

_NODE = re.compile(r"(nats|redis|sentinel)-\d")


def rounds(
    seed: int, targets: Targets, kinds: Sequence[str] = tuple(KINDS), *, together: int = MOST_IN_A_ROUND
) -> Iterator[Sequence[Fault]]:
    """Rounds of up to `together` faults, without end. Those of a round overlap, each on a target of its own.

    Of the servers of a cluster one of each sort is hit in a round: with one copy of a write beside the primary's, as
    it is here, it is one that may be away.
    """
    randomness = random.Random(seed)
    kinds = [kind for kind in kinds if _choices(kind, targets)]
    shared = [kind for kind in kinds if not KINDS[kind].is_alone]
    while True:
        kind = _kind(randomness, kinds)
        first = _fault(randomness, kind, _choices(kind, targets), after=0.0)
        faults = {_sort(first.target): first}
        count = 1 if KINDS[kind].is_alone else randomness.randint(1, together)
        for _ in range(count - 1):
            kind = _kind(randomness, shared)
            if choices := [each for each in _choices(kind, targets) if _sort(each) not in faults]:
                fault = _fault(randomness, kind, choices, after=round(randomness.uniform(0.0, 2.0), 1))
                faults[_sort(fault.target)] = fault
        yield tuple(faults.values())


def _sort(target: str) -> str:
    """What at most one fault of a round hits: a target, or the servers of a cluster of one sort."""
    node = _NODE.fullmatch(target)
    return node[1] if node else target


def _kind(randomness: random.Random, kinds: Sequence[str]) -> str:
    return randomness.choices(kinds, [KINDS[kind].weight for kind in kinds])[0]


def _fault(randomness: random.Random, kind: str, choices: Sequence[str], *, after: float) -> Fault:
    rule = KINDS[kind]
    target = randomness.choice(choices)
    seconds = round(randomness.uniform(rule.least_seconds, rule.most_seconds), 1)
    detail = (
        str(randomness.randrange(GARBAGE_SEEDS)) if kind == "garbage" else randomness.choice(DETAILS.get(kind, ("",)))
    )
    return Fault(kind, target, seconds, after, detail)


def _choices(kind: str, targets: Targets) -> Sequence[str]:
    """What a kind can hit. Servers and strangers come as often as any process; `redis` is the primary."""
    redis_nodes = [each for each in targets.nodes if each.startswith("redis")]
    return {
        "kill": [*targets.services, *targets.servers, *targets.strangers],
        "pause": [*targets.services, *targets.servers],
        "cut": targets.lines,
        "half-open": targets.lines,
        "delay": targets.lines,
        "clock": targets.services,
        "rolling": targets.roles,
        "garbage": ["bus"],
        "disk-full": targets.nodes or targets.servers,
        "restore": () if targets.nodes else targets.servers,
        "failover": ("nats", "redis") if targets.nodes else (),
        "partition": [each for each in targets.nodes if each.startswith("nats")],
        "redis-partition": ("redis", *redis_nodes) if redis_nodes else (),
        "old-disk": targets.nodes,
    }[kind]
