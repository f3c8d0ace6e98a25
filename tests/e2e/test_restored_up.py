"""A landscape with identities that begins with a backup, as docs/operating.md has it: single servers, and clusters."""

from pathlib import Path

import pytest

from tests.e2e.test_documented_restore import PAGE, running_at
from tests.support.sessions import Reader, Step, blocks

HERE = f"tests/e2e/{Path(__file__).name}"
URL = """$(python -c 'import json; print(json.load(open(".gardenbus/landscape.json"))["nats_url"])')"""
FILES = "GARDENBUS_NATS_CA=.gardenbus/identity/ca.crt GARDENBUS_NATS_CREDENTIALS=ann.json"
AS_ANN = f"GARDENBUS_NATS_URL={URL} {FILES} gardenbus auth whoami"


@pytest.mark.long
@pytest.mark.parametrize("servers", ["", " --cluster"])
async def test_a_landscape_whose_servers_lost_their_disks_begins_with_its_backup(tmp_path: Path, servers: str) -> None:
    (part,) = [block for block in blocks(PAGE) if block.verb == "run by" and block.argument == HERE]
    reader = Reader(tmp_path)
    running: tuple[str, str, int] | None = None
    try:
        for step in part.steps:
            await reader.type(step._replace(command=step.command.replace("gardenbus up", f"gardenbus up{servers}")))
            if "backup create" in step.command:
                running = running_at(tmp_path)
        assert running_at(tmp_path) == running
        await reader.type(Step(AS_ANN, ["ann", "viewer"]))
    finally:
        await reader.leave()
