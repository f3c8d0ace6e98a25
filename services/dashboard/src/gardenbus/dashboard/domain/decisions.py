"""A scheduler's explanation as the page shows it: seeds in numbers, by filter and reason, and a page of each. Pure.

The explanation itself has a line for each seed of the landscape, and there may be ten thousand of them.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.rows import text

MOST_RANKED = 50
"""Seeds of the ranking that are shown."""

FIRST_SEEDS = 20
"""Seeds of each filter that come with the outline; the others come in pages."""

MOST_REASONS = 5
"""Reasons of each filter that are counted, the most frequent ones."""


class ReasonCount(msgspec.Struct, frozen=True):
    """A reason, and the number of seeds that are rejected for it."""

    detail: str
    seeds: int


class RejectionGroup(msgspec.Struct, frozen=True):
    """Seeds that one filter rejects: how many, why, and the first; `reasons` is empty where each has its own."""

    rule: str
    total: int
    reasons: Sequence[ReasonCount]
    items: Sequence[Document]


def outline_of(explanation: Document) -> Document:
    """Return an explanation with `rejected` (groups) for its `rejections`, and the beginning of its `ranking`."""
    considered = section(explanation, "considered")
    if not considered:
        return explanation
    ranking = mappings(considered.get("ranking"))
    rejections = mappings(considered.get("rejections"))
    shown = {name: value for name, value in considered.items() if name != "rejections"} | {
        "ranking": ranking[:MOST_RANKED],
        "ranked": len(ranking),
        "rejected": _grouped(rejections),
    }
    return {**explanation, "considered": shown}


def rejections_by(explanation: Document, rule: str) -> list[Document]:
    """Return the rejections of one filter, by seed."""
    found = mappings(section(explanation, "considered").get("rejections"))
    return [each for each in found if each.get("rule") == rule]


def _grouped(rejections: Sequence[Document]) -> list[RejectionGroup]:
    groups: defaultdict[str, list[Document]] = defaultdict(list)
    for each in rejections:
        groups[text(each.get("rule"))].append(each)
    return [RejectionGroup(rule, len(each), _reasons(each), each[:FIRST_SEEDS]) for rule, each in groups.items()]


def _reasons(rejections: Sequence[Document]) -> list[ReasonCount]:
    counts = Counter(text(each.get("detail")) for each in rejections)
    if len(counts) == len(rejections):
        return []
    return [ReasonCount(detail, count) for detail, count in counts.most_common(MOST_REASONS)]
