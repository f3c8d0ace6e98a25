"""Who answers for a seed's backend `nats` comes in by issued credentials, serves that seed, and can do nothing else."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from gardenbus.common.adapters.nats.credentials import Login, login_credentials
from gardenbus.common.api.identity.issued_credentials import credentials_secret
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.runtime.clock import SystemClock
from tests.support.eventually import eventually
from tests.support.gardenlets import Garden, a_configuration
from tests.support.identities import SUBJECTS, Guarded
from tests.support.memory.store import MemoryStore
from tests.support.permission_walk import rejections
from tests.support.sessions import ROOT

SEED, PASSWORD = "aws-eu1", "only the extension knows it"
EXTENSION, APOLLO = Principal("extension", SEED), ObjectKey("shoot", "garden-dev", "apollo")
RESPONDER = ROOT / "examples" / "backend" / "nats_backend.py"


async def issue(landscape: Guarded, store: MemoryStore, principal: Principal) -> None:
    """What `gardenbus identity issue` stores, and the identity service sees."""
    secret = credentials_secret("issued", principal, SystemClock().now() + timedelta(hours=1), password=PASSWORD)
    key = ObjectKey("secret", "garden", "issued")
    await store.create(secret)
    landscape.cache.changed(key, None, await store.get(key))


@contextmanager
def a_responder(landscape: Guarded, folder: Path) -> Generator[None]:
    """The program of docs/backends.md, with the file that `gardenbus identity issue` writes."""
    credentials = folder / "credentials.json"
    credentials.write_text(json.dumps({"user": EXTENSION.user, "password": PASSWORD}))
    subject = SUBJECTS.extensions_of(SEED)
    process = subprocess.Popen(
        [sys.executable, str(RESPONDER), landscape.server.url, subject, str(folder), str(credentials)]
    )
    try:
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


async def test_the_responder_of_the_page_serves_its_seed_over_the_ends_of_its_sessions(
    agents_landscape: Guarded, garden: Garden, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    await issue(agents_landscape, garden.store, EXTENSION)
    agents_landscape.certify(Principal("gardenlet", SEED), garden.directory / SEED)
    with a_responder(agents_landscape, folder):
        await garden.start_alone(a_configuration(backend={"type": "nats"}))
        await garden.place()
        await garden.until_state("Succeeded")
        capsys.readouterr()

        async def came_again() -> None:
            lines = capsys.readouterr().out.splitlines()
            assert [line for line in lines if "connection.granted" in line and EXTENSION.user in line]

        await eventually(came_again)
        await garden.delete(APOLLO)
        await garden.until_gone(APOLLO)


async def test_its_credentials_are_good_for_nothing_else(agents_landscape: Guarded) -> None:
    await issue(agents_landscape, MemoryStore(SystemClock(), reporter="tester"), EXTENSION)
    tried = (
        *(
            "garden.apply",
            "garden.api.whoami",
            f"garden.as.{EXTENSION.token}.api.whoami",
            f"garden.report.{SEED}.seed.x",
        ),
        *(SUBJECTS.extension(SEED, "etcd"), SUBJECTS.lease(SEED), "_INBOX.seed:other.x", "IN.API.STREAM.INFO.OBJECTS"),
    )
    listened = (SUBJECTS.extensions_of("other"), SUBJECTS.extension("*", "*"), "_INBOX.>", f"garden.binding.{SEED}.>")
    login = login_credentials(Login(EXTENSION.user, PASSWORD))
    rejected = await rejections(agents_landscape.server.url, login, EXTENSION, [*tried, *listened])
    assert {("publish", each.lower()) for each in tried} <= {*rejected}
    assert {("subscription", each.lower()) for each in listened} <= {*rejected}
