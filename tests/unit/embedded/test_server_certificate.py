"""NATS' certificate is looked after while a landscape runs."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gardenbus.cli.local.authority_rotation import AuthorityRotation
from gardenbus.common.api.keys import Subjects
from gardenbus.credentials.identity_directory import IdentityDirectory
from gardenbus.embedded.identities import EmbeddedIdentities
from gardenbus.embedded.server_certificate import keep_certificate
from tests.support.eventually import eventually


class Kept:
    """An identity directory that is looked after, and how often the server was told to read."""

    def __init__(self, path: Path) -> None:
        self.identities = EmbeddedIdentities(path, Subjects())
        self.directory = IdentityDirectory(path)
        self.reloads = 0

    def reload(self) -> None:
        self.reloads += 1


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    kept = Kept(tmp_path / "identity")
    task = asyncio.create_task(keep_certificate(kept.identities, kept.reload, poll_seconds=0.005))
    await asyncio.sleep(0)
    yield kept
    task.cancel()
    await asyncio.wait((task,))


async def test_another_certificate_is_read_once(kept: Kept) -> None:
    AuthorityRotation(kept.directory.authorities, kept.directory.authority_key).begin(datetime.now(UTC))
    kept.directory.replace_old_server_certificate(datetime.now(UTC))
    written = kept.directory.server_certificate.read_bytes()

    async def read() -> None:
        assert kept.reloads == 1

    await eventually(read)
    kept.directory.replace_old_server_certificate(datetime.now(UTC))
    assert kept.directory.server_certificate.read_bytes() == written


async def test_a_key_whose_certificate_never_came_is_replaced_with_both(kept: Kept) -> None:
    before = kept.directory.server_certificate.read_bytes()
    kept.directory.server_key.write_bytes(kept.directory.authority_key.read_bytes())

    async def read() -> None:
        assert kept.reloads == 1

    await eventually(read)
    assert kept.directory.server_certificate.read_bytes() != before
