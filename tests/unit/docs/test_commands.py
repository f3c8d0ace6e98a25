"""No command is shown that nobody has executed."""

from pathlib import Path

import pytest

from tests.support.sessions import PAGES, ROOT, blocks


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_block_of_commands_says_who_executes_it(page: Path):
    for block in blocks(page):
        if block.verb == "session":
            assert block.steps, block
            assert not block.argument, block
        elif block.verb == "run by":
            assert (ROOT / block.argument).is_file(), block
        else:
            assert block.how == "needs: docker", f"{page.name}: say in a comment who executes this:\n{block.text}"
