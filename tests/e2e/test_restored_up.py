"""A landscape with identities that begins with a backup, as docs/operating.md has it: single servers, clusters, S3."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_documented_restore import PAGE, running_at
from tests.support.s3_server import KEYS, make_bucket, start_s3
from tests.support.sessions import Reader, Step, blocks

HERE = f"tests/e2e/{Path(__file__).name}"
URL = """$(python -c 'import json; print(json.load(open(".gardenbus/landscape.json"))["nats_url"])')"""
FILES = "GARDENBUS_NATS_CA=.gardenbus/identity/ca.crt GARDENBUS_NATS_CREDENTIALS=ann.json"
AS_ANN = f"GARDENBUS_NATS_URL={URL} {FILES} gardenbus auth whoami"


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where backups are kept: a directory, or S3 (moto's server), whose endpoint is in the address."""
    if request.param == "directory":
        yield "backups"
        return
    server = start_s3(tmp_path / "s3")
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    yield shlex.quote(make_bucket(server, "backups").replace("?", "/landscape?"))
    server.stop()


@pytest.mark.long
@pytest.mark.parametrize(
    ("servers", "place"), [("", "directory"), (" --cluster", "directory"), ("", "s3")], indirect=["place"]
)
async def test_a_landscape_whose_servers_lost_their_disks_begins_with_its_backup(
    tmp_path: Path, servers: str, place: str
) -> None:
    (part,) = [block for block in blocks(PAGE) if block.verb == "run by" and block.argument == HERE]
    reader = Reader(tmp_path)
    running: tuple[str, str, int] | None = None
    try:
        for step in part.steps:
            command = step.command.replace("gardenbus up", f"gardenbus up{servers}")
            for option in ("-d", "--restore"):
                command = command.replace(f"{option} backups", f"{option} {place}")
            await reader.type(step._replace(command=command))
            if "backup create" in step.command:
                running = running_at(tmp_path)
        assert running_at(tmp_path) == running
        await reader.type(Step(AS_ANN, ["ann", "viewer"]))
    finally:
        await reader.leave()
