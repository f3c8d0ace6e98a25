"""A plug-in of schedulers comes in by issued credentials, responds on its subject, and can do nothing else."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.credentials import Login, login_credentials
from gardenbus.common.api.garden.scheduling_profiles import PROFILE_PLUGINS
from gardenbus.common.api.identity.issued_credentials import credentials_secret
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Unavailable
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.diagnostics.admin import connect_admin
from gardenbus.diagnostics.services import silent_plugins
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.identities import SUBJECTS, Guarded
from tests.support.memory.store import MemoryStore
from tests.support.permission_walk import rejections
from tests.support.sessions import ROOT

PLUGIN, PASSWORD = Principal("plugin", "carbon"), "only the plug-in knows it"
SUBJECT = SUBJECTS.plugin(PLUGIN.name)
EXAMPLE = ROOT / "examples" / "profiles" / "carbon.py"
ABOUT = json.dumps({"seeds": [{"name": "aws-eu-north-1", "generation": 1}]}).encode()


async def issue(landscape: Guarded) -> None:
    """What `gardenbus identity issue` stores, and the identity service sees."""
    store, key = MemoryStore(SystemClock(), reporter="tester"), ObjectKey("secret", "garden", "issued")
    await store.create(
        credentials_secret("issued", PLUGIN, SystemClock().now() + timedelta(hours=1), password=PASSWORD)
    )
    landscape.cache.changed(key, None, await store.get(key))


@asynccontextmanager
async def the_example(landscape: Guarded, folder: Path) -> AsyncGenerator[None]:
    """The program of the page, with the file that `gardenbus identity issue` writes."""
    credentials = folder / "credentials.json"
    credentials.write_text(json.dumps({"user": PLUGIN.user, "password": PASSWORD}))
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLE), landscape.server.url, str(credentials), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        yield
        assert process.returncode is None
    finally:
        process.kill()
        await process.wait()


async def test_the_program_of_the_page_serves_schedulers_over_the_ends_of_its_sessions(
    agents_landscape: Guarded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await issue(agents_landscape)
    credentials = agents_landscape.credentials(Principal("service", "scheduler"))
    url = agents_landscape.server.url
    async with jetstream.connect(url, "scheduler", credentials=credentials, manages_streams=False) as bus:
        with pytest.raises(Unavailable):
            await bus.request(SUBJECT, ABOUT, timeout_seconds=0.5)
        async with the_example(agents_landscape, tmp_path):
            response = await bus.request(SUBJECT, ABOUT, timeout_seconds=HANG_SECONDS)
            assert json.loads(response)["scores"] == {"aws-eu-north-1": 96}
            capsys.readouterr()

            async def came_again() -> None:
                lines = capsys.readouterr().out.splitlines()
                assert [line for line in lines if "connection.granted" in line and PLUGIN.user in line]

            await eventually(came_again)

            async def responds() -> None:
                try:
                    await bus.request(SUBJECT, ABOUT, timeout_seconds=0.5)
                except Unavailable as error:
                    raise AssertionError from error

            await eventually(responds)


async def test_doctor_finds_a_plugin_outside_the_services_account(agents_landscape: Guarded, tmp_path: Path) -> None:
    await issue(agents_landscape)
    infos: list[dict[str, Any]] = [
        {"endpoints": [{"metadata": {"schedulerName": "default-scheduler", PROFILE_PLUGINS: SUBJECT}}]}
    ]
    operator = agents_landscape.credentials(Principal("operator", "operator"))
    async with connect_admin(agents_landscape.server.url, "doctor", operator) as admin:
        findings = await silent_plugins(admin, infos)
        assert [each.found for each in findings] == [f"default-scheduler: nothing responds on {SUBJECT}"]
        async with the_example(agents_landscape, tmp_path):
            assert await silent_plugins(admin, infos) == []


async def test_its_credentials_are_good_for_nothing_else(agents_landscape: Guarded) -> None:
    await issue(agents_landscape)
    tried = (
        *("garden.apply", "garden.api.whoami", f"garden.as.{PLUGIN.token}.api.whoami", SUBJECT),
        *(SUBJECTS.lease("aws"), "_INBOX.seed:aws.x", "_INBOX.scheduler.x", "IN.API.STREAM.INFO.OBJECTS"),
    )
    listened = (SUBJECTS.plugin("other"), SUBJECTS.plugin("*"), "_INBOX.>", "_R_.>", "$SRV.INFO", "garden.binding.>")
    login = login_credentials(Login(PLUGIN.user, PASSWORD))
    rejected = await rejections(agents_landscape.server.url, login, PLUGIN, [*tried, *listened])
    assert {("publish", each.lower()) for each in tried} <= {*rejected}
    assert {("subscription", each.lower()) for each in listened} <= {*rejected}
