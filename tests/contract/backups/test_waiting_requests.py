"""Orders that waited when a backup was made: a restore brings each back, at its place and in its sender's name."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.adapters.nats.jetstream import connect
from gardenbus.common.adapters.redis.backups import RedisBackups
from gardenbus.common.adapters.redis.stream_histories import RedisStreamHistories
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.backups.creating import BackupSource, Created, create_delta, create_full, read_catalog
from gardenbus.common.backups.directory import DirectoryDestination
from gardenbus.common.backups.requests import WaitingRequests
from gardenbus.common.backups.restoring import RestoredChain, chosen_chain, restore, verify
from gardenbus.common.ports.backups import WaitingRequest
from tests.contract.apiserver.conftest import Apiserver, an_idle_apiserver
from tests.support.builders import a_project, merged
from tests.support.commands import gardenbus_program
from tests.support.landscape import ended
from tests.support.servers import Server, start_nats, start_redis

CONFIRMED = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
BOB = '{"user":"bob"}'


class Site:
    """A landscape without any apiserver at work, its backups, and both of its servers."""

    def __init__(self, apiserver: Apiserver, nats: Server, redis: Server, directory: Path) -> None:
        self.apiserver = apiserver
        self.destination = DirectoryDestination(directory / "backups")
        self._nats = nats
        self._redis = redis

    async def order(self, verb: str, name: str, text: str = "", **headers: str) -> int:
        """Publish an order on a project as ann."""
        return await self.apiserver.publish(f"as.ann.{verb}", a_document(name, text), headers)

    @property
    def prefix(self) -> str:
        """First word of the landscape's subjects."""
        return self.apiserver.subjects.prefix

    @asynccontextmanager
    async def requests(self) -> AsyncGenerator[WaitingRequests]:
        """What waits, as backups see it."""
        async with AsyncExitStack() as stack:
            requests = (await self._source(stack)).requests
            assert requests is not None
            yield requests

    async def back_up(self, latest: Created | None = None) -> Created:
        """A full backup, or what goes on from another."""
        async with AsyncExitStack() as stack:
            source = await self._source(stack)
            if latest is None:
                return await create_full(source, self.destination, now)
            made = await create_delta(source, self.destination, now, latest.latest)
            assert made is not None
            return made

    async def command(self, verb: str, *options: str) -> str:
        """Output of `gardenbus backup`, which must succeed."""
        servers = ("--nats-url", self._nats.url, "--redis-url", self._redis.url, "--prefix", self.prefix)
        where = servers if verb in ("create", "restore") else ()
        process = await asyncio.create_subprocess_exec(
            *(str(gardenbus_program()), "backup", verb, "-d", self.destination.place, *where, *options),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        done = await ended(process)
        assert done.code == 0, done
        return done.stdout

    async def lose_both_disks(self) -> None:
        """Both servers begin anew with nothing; the store is closed, and no stream is there."""
        await self.apiserver.kit.close_for_writes()
        connection = self.apiserver.kit.connection
        assert connection is not None
        await connection.command("FLUSHALL")
        for name in ("REQUESTS", "OBJECTS", "QUEUES", "BINDINGS", "LEASES", "REPORTS", "EVENTS", "REJECTED", "HISTORY"):
            await self.apiserver.client.request(
                f"$JS.API.STREAM.DELETE.{self.apiserver.subjects.stream(name)}", timeout=5
            )

    async def restore(self) -> RestoredChain:
        """Restore the latest chain, and open the store as a relay does."""
        chain = chosen_chain(await read_catalog(self.destination), "", "here")
        assert [each.problem for each in await verify(self.destination, chain)] == [""] * len(chain.backups)
        async with AsyncExitStack() as stack:
            source = await self._source(stack)
            done = await restore(source.store, self.destination, chain, source.prefix, source.requests)
        await self.apiserver.kit.open()
        return done

    async def start(self) -> None:
        """An apiserver, until nothing waits any more."""
        await self.apiserver.start()
        await self.apiserver.until_handled()

    async def project(self, name: str) -> dict[str, Any] | None:
        """A stored project."""
        stored = await self.apiserver.kit.store.get(ObjectKey("project", "", name))
        return None if stored is None else stored.document()

    async def text(self, name: str) -> str:
        """Description of a project, which must be there."""
        document = await self.project(name)
        assert document is not None, name
        return document["spec"]["description"]

    async def _source(self, stack: AsyncExitStack) -> BackupSource:
        connection = self.apiserver.kit.connection
        assert connection is not None
        subjects = self.apiserver.subjects
        bus = await stack.enter_async_context(connect(self._nats.url, "backup", subjects.prefix))
        requests = WaitingRequests(bus, RedisStreamHistories(connection), subjects)
        return BackupSource(RedisBackups(connection), subjects.prefix, "0.1.0", requests)


def a_document(name: str, text: str) -> dict[str, Any]:
    namespaced = {"metadata": {"name": name}, "spec": {"namespace": f"garden-{name}", "description": text}}
    return merged(merged(a_project(), namespaced), CONFIRMED)


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Servers of these tests' own, which are emptied again and again."""
    nats, redis = start_nats(tmp_path_factory.mktemp("nats")), start_redis(tmp_path_factory.mktemp("redis"))
    yield nats, redis
    nats.stop()
    redis.stop()


@pytest.fixture
async def site(servers: tuple[Server, Server], tmp_path: Path) -> AsyncIterator[Site]:
    """See the class."""
    nats, redis = servers
    async with an_idle_apiserver(nats.url, redis.url) as apiserver:
        yield Site(apiserver, nats, redis, tmp_path)


async def test_orders_that_waited_are_carried_out_in_their_order_and_in_their_senders_name(site: Site) -> None:
    for number in range(150):  # more than a page
        await site.order("apply", f"p{number:03}", "ordered")
    await site.order("apply", "p000", "changed")
    await site.order("apply", "gone", "short-lived")
    await site.order("delete", "gone")
    created = await site.back_up()
    assert created.latest.backup.waiting == 153
    await site.lose_both_disks()
    assert (await site.restore()).requests == 153
    await site.start()
    assert [await site.text(f"p{number:03}") for number in range(150)] == ["changed", *["ordered"] * 149]
    assert await site.project("gone") is None
    first = await site.project("p001")
    assert first is not None
    assert first["metadata"]["annotations"]["gardener.cloud/created-by"] == "ann"
    assert await site.apiserver.rejected() == []
    (loss,) = [each for each in await site.apiserver.kit.outbox.stream_losses() if each.of_store]
    assert "restored from a backup" in loss.text
    assert sum(each.waiting for each in await site.apiserver.kit.outbox.stream_losses()) == 0


async def test_an_order_that_is_in_the_store_too_is_not_carried_out_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Orders are read, then carried out and followed by others, before the backup reads the rest of the store."""
    await site.order("apply", "kept", "first")
    await site.order("apply", "made-anew", "first")
    await site.order("delete", "made-anew")
    await site.order("apply", "removed", "first")
    pages, is_over = WaitingRequests.pages, False

    async def followed_by_others(self: WaitingRequests) -> Any:
        async for page in pages(self):
            yield page
        nonlocal is_over
        is_over = True
        await site.start()
        for name in ("kept", "made-anew"):
            await site.apiserver.request("apply", a_document(name, "second"), user="ann")
        await site.apiserver.request("delete", a_document("removed", ""), user="ann")

    monkeypatch.setattr(WaitingRequests, "pages", followed_by_others)
    created = await site.back_up()
    assert (is_over, created.latest.backup.waiting) == (True, 4)
    uids = [(await site.project(name) or {})["metadata"]["uid"] for name in ("kept", "made-anew")]
    for context in site.apiserver.contexts:
        await context.close()
    await site.lose_both_disks()
    await site.restore()
    await site.start()
    assert [await site.text(name) for name in ("kept", "made-anew")] == ["second", "second"]
    assert [(await site.project(name) or {})["metadata"]["uid"] for name in ("kept", "made-anew")] == uids
    assert await site.project("removed") is None


async def test_what_is_sent_after_the_loss_wins_wherever_it_stands(site: Site) -> None:
    for name in ("before", "behind", "answered"):
        await site.order("apply", name, "old")
    await site.back_up()
    await site.lose_both_disks()
    async with connect(site.apiserver.nats_url, "gardenlet", site.apiserver.subjects.prefix):
        await site.order("apply", "before", "new")
    await site.restore()
    await site.order("apply", "behind", "new")
    await site.start()
    assert [await site.text(name) for name in ("before", "behind", "answered")] == ["new", "new", "old"]
    await site.apiserver.request("apply", a_document("answered", "new"), user="ann")
    await site.order("apply", "behind", "newer")
    await site.apiserver.until_handled()
    assert [await site.text(name) for name in ("answered", "behind")] == ["new", "newer"]


async def test_a_restore_that_is_repeated_and_backed_up_again_keeps_each_order_and_its_sender(site: Site) -> None:
    await site.order("apply", "one", "old")
    full = await site.back_up()
    await site.order("delete", "one")
    await site.order("apply", "two", "old", **{"Nats-Msg-Id": "mine", "Gardenbus-Validate": "strict"})
    await site.order("apply", "three", "old")
    delta = await site.back_up(full)
    assert (delta.records, delta.latest.backup.waiting) == (0, 4)
    await site.lose_both_disks()
    await site.restore()
    connection = site.apiserver.kit.connection
    assert connection is not None
    await site.apiserver.kit.close_for_writes()
    await connection.command("FLUSHALL")  # Redis' disk is lost once more: the same orders stand in NATS already
    await site.restore()
    again = await site.back_up()
    assert again.latest.backup.waiting == 8
    await site.lose_both_disks()
    await site.restore()
    await site.start()
    assert await site.project("one") is None
    assert await site.text("two") == "old"
    assert await site.text("three") == "old"


async def test_the_sender_whom_the_server_stated_stands_and_nobody_can_state_another(site: Site) -> None:
    def sent_by_bob(sequence: int, subject: str) -> WaitingRequest:
        body = json.dumps(a_document(f"p{sequence}", "old")).encode()
        return WaitingRequest(f"{site.prefix}.{subject}", {"Nats-Request-Info": BOB}, body, 7, sequence, "")

    async with site.requests() as requests:
        await requests.put_back([sent_by_bob(1, "as.bob.apply"), sent_by_bob(2, "as.ann.apply")])
    await site.order("apply", "p3", "old", **{"Gardenbus-Restored-Request-Info": BOB})
    for _ in range(2):  # once from what was put back, once from a backup of that
        await site.back_up()
        await site.lose_both_disks()
        await site.restore()
    async with site.requests() as requests:
        saved = [each async for page in requests.pages() for each in page]
    places = [(each.subject.removeprefix(f"{site.prefix}."), each.headers, each.sequence) for each in saved]
    stated = {"Nats-Request-Info": BOB}
    assert places == [("as.bob.apply", stated, 1), ("as.ann.apply", stated, 2), ("as.ann.apply", {}, 3)]
    await site.start()
    assert [await site.text("p1"), await site.text("p3")] == ["old", "old"]
    (rejected,) = await site.apiserver.rejected()
    assert rejected.headers["Gardenbus-Subject"] == f"{site.prefix}.as.ann.apply"
    assert "'bob' sent this in the name of 'ann'" in rejected.headers["Gardenbus-Reason"]


async def test_an_impossible_place_is_rejected(site: Site) -> None:
    await site.apiserver.publish("restored.x.1.apply", a_document("one", ""))
    assert (await site.back_up()).latest.backup.waiting == 0
    await site.apiserver.start()
    assert "is not restored.<incarnation>.<sequence>" in await site.apiserver.reason()


async def test_the_command_line_saves_them_shows_their_number_and_puts_them_back(site: Site) -> None:
    await site.order("apply", "one", "ordered")
    await site.apiserver.kit.outbox.resign()
    assert ", 1 request waiting," in await site.command("create")
    (item,) = json.loads(await site.command("ls", "-o", "json"))["items"]
    assert item["waitingRequests"] == 1
    (checked,) = json.loads(await site.command("verify", "-o", "json"))["items"]
    assert (checked["problem"], checked["requests"]) == ("", 1)
    await site.lose_both_disks()
    assert "1 request put back that waited then" in await site.command("restore")
    await site.apiserver.kit.open()
    await site.start()
    assert await site.text("one") == "ordered"
