"""The page of concepts documents the table of filters."""

import re
from pathlib import Path

from gardenbus.scheduling.filters.table import CHECKS, FILTERS

PAGE = (Path(__file__).parents[3] / "docs" / "concepts.md").read_text()
TABLE = PAGE.split("| filter |", 1)[1].split("\n\n", 1)[0]


def test_it_lists_the_rules_in_their_order():
    assert re.findall(r"^\| `([a-z-]+)` \|", TABLE, re.MULTILINE) == [row.name for row in (*FILTERS, *CHECKS)]


def test_it_says_what_each_rule_removes_and_what_may_unblock_a_shoot():
    rows = re.findall(r"^\| `[a-z-]+` \| (.+) \| (.+) \|$", TABLE, re.MULTILINE)
    assert [(removes, tuple(events.lower().split(", "))) for removes, events in rows] == [
        (row.removes, row.unblocked_by) for row in (*FILTERS, *CHECKS)
    ]
