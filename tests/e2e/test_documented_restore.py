"""The restore of docs/operating.md as it is written: what was made after the copy is not torn down, nor built anew."""

from pathlib import Path

import msgspec
import pytest

from gardenbus.gardenlet.domain.shoot_record import ShootRecord
from tests.support.sessions import ROOT, Reader, blocks

PAGE = ROOT / "docs/operating.md"
HERE = f"tests/e2e/{Path(__file__).name}"


def running_at(directory: Path) -> tuple[str, str, int]:
    """The file of the shoot's control plane, its uid, and how often its namespace was made."""
    (file,) = (directory / ".gardenbus" / "gardenlets").rglob("shoots/garden-session/apollo.json")
    record = msgspec.json.decode(file.read_bytes(), type=ShootRecord)
    return str(file), record.uid, record.applied["namespace"]


@pytest.mark.long
async def test_the_restore_goes_as_it_is_written_and_the_shoot_made_after_the_copy_goes_on(tmp_path: Path) -> None:
    parts = [block for block in blocks(PAGE) if block.verb == "run by" and block.argument == HERE]
    assert len(parts) == 4
    reader = Reader(tmp_path)
    running: tuple[str, str, int] | None = None
    try:
        for number, part in enumerate(parts):
            for step in part.steps:
                await reader.type(step)
            if number == 1:
                running = running_at(tmp_path)
        assert running_at(tmp_path) == running
    finally:
        await reader.leave()
