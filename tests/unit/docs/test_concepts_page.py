"""What the page of concepts says of the scheduler."""

import re
from pathlib import Path

from gardenbus.scheduling.rules import CHECKS, FILTERS

PAGE = (Path(__file__).parents[3] / "docs" / "concepts.md").read_text()


def test_it_lists_the_rules_in_their_order():
    table = PAGE.split("| rule |", 1)[1].split("\n\n", 1)[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == [*(rule.name for rule in FILTERS), *CHECKS]
