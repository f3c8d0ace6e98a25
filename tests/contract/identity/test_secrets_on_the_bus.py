"""Announcements of Secrets go to those who need them: the server keeps the dashboard from them."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from gardenbus.common.adapters.nats.jetstream import connect
from gardenbus.common.api.identity.permissions import covers, permissions_of
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.api.kinds import CONFIDENTIAL, SHOWN
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Message
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.watch.updater import CacheUpdater
from gardenbus.diagnostics.replay import rejected_after, rejected_message
from tests.support.builders import a_seed
from tests.support.eventually import eventually
from tests.support.identities import SUBJECTS, Guarded, guarded

RELAY, DASHBOARD = Principal("service", "relay"), Principal("service", "dashboard")
SEED, SECRET = ObjectKey("seed", "", "aws-eu1"), ObjectKey("secret", "garden", "backup")


def announcement(key: ObjectKey, document: dict[str, Any]) -> Message:
    headers = {Header.VERSION: "1", Header.UID: "u", Header.VERB: "added"}
    return Message(SUBJECTS.changed(key), msgspec.json.encode(document), headers)


def test_no_kind_with_credentials_is_among_those_that_the_dashboard_follows() -> None:
    assert not CONFIDENTIAL & set(SHOWN)
    publish = permissions_of(DASHBOARD, SUBJECTS).publish
    create = "$JS.API.CONSUMER.CREATE.OBJECTS.follower"
    assert covers(publish, f"{create}.garden.changed.shoot.>")
    for subject in (create, *(f"{create}.garden.changed.{kind}.>" for kind in (*CONFIDENTIAL, "*", "work"))):
        assert not covers(publish, subject), subject
    assert not covers(publish, f"{create}.garden.changed.>")
    assert not covers(publish, f"{create}.>")


async def test_the_server_gives_the_dashboard_seeds_and_no_secrets(tmp_path: Path) -> None:
    async with guarded(tmp_path) as landscape:
        url = landscape.server.url
        async with (
            connect(url, "relay", credentials=landscape.credentials(RELAY)) as relay,
            connect(url, "dashboard", manages_streams=False, credentials=landscape.credentials(DASHBOARD)) as dashboard,
        ):
            await relay.ensure_streams()
            await relay.publish(announcement(SECRET, {"kind": "Secret", "data": {"key": "aGlkZGVu"}}))
            await relay.publish(announcement(SEED, a_seed()))
            cache = DashboardCache()
            updater = CacheUpdater(dashboard, SUBJECTS, cache, GardenApiClient(dashboard, SUBJECTS))
            following = asyncio.create_task(updater.run_objects())

            async def synced() -> None:
                assert cache.synced

            try:
                await eventually(synced)
            finally:
                following.cancel()
            assert cache.row(SEED) is not None
            assert cache.row(SECRET) is None
            rejected = {Header.SUBJECT: "garden.apply", Header.REASON: "Invalid: spec.region: is needed"}
            await _rejects(landscape, Message(SUBJECTS.rejected("garden.apply"), b"{}", rejected))
            api = GardenApiClient(dashboard, SUBJECTS)
            assert [each.id for each in await rejected_after(api, 0)] == [1]
            assert (await rejected_message(api, 1)).subject == "garden.apply"
            await _rejects_consumers_that_see_secrets(landscape)


async def _rejects(landscape: Guarded, message: Message) -> None:
    credentials = landscape.credentials(Principal("service", "apiserver"))
    async with connect(landscape.server.url, "apiserver", manages_streams=False, credentials=credentials) as apiserver:
        await apiserver.publish(message)


async def _rejects_consumers_that_see_secrets(landscape: Guarded) -> None:
    """By one filter, by several, by none, or by a body that says something else than the subject."""
    connection = await landscape.connect(DASHBOARD)
    secrets = "garden.changed.secret.>"
    create = "$JS.API.CONSUMER.CREATE.OBJECTS.f"
    allowed = f"{create}.garden.changed.seed.>"
    attempts: list[tuple[str, dict[str, Any]]] = [
        (f"{create}.{secrets}", {"filter_subject": secrets}),
        (create, {"filter_subjects": [secrets, "garden.changed.seed.>"]}),
        (create, {}),
        (allowed, {"filter_subject": secrets}),
        (allowed, {"filter_subjects": [secrets]}),
        (allowed, {}),
    ]
    for subject, filters in attempts:
        config = {
            "name": "f",
            "deliver_policy": "all",
            "ack_policy": "none",
            "inactive_threshold": 5 * 10**9,
            **filters,
        }
        body = msgspec.json.encode({"stream_name": "OBJECTS", "config": config})
        try:
            response = await connection.request_raw(subject, body, timeout_seconds=1.0)
        except Unavailable:
            continue  # the server dropped it: this may not even be published
        assert "error" in msgspec.json.decode(response.body), (subject, filters)
