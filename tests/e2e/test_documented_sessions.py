"""Every command that README and documentation show in a session does what they say it does."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.landscape import a_landscape
from tests.support.sessions import PAGES, ROOT, Step, play, sessions

SESSIONS = [
    pytest.param(files, steps, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, (files, steps) in enumerate(sessions(page))
]


@pytest.mark.slow
@pytest.mark.parametrize(("files", "steps"), SESSIONS)
async def test_the_session_goes_as_it_is_written(files: Sequence[str], steps: Sequence[Step], tmp_path: Path) -> None:
    options = [word for file in files for word in ("-f", str(ROOT / file))]
    async with a_landscape(tmp_path / "state", *options) as landscape:
        await play(steps, landscape, tmp_path)
