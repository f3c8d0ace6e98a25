"""Numbers, use and unschedulable shoots from the store's indexes, for as long as announcements are still being read."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gardenbus.common.api.keys import ObjectKey
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.watch.waiting import WaitingShoot, texts_of


class FirstRead(msgspec.Struct, frozen=True):
    """Numbers of shoots, shoots on each seed, and those that wait, each with its cause."""

    shoots: int = 0
    shoots_waiting: int = 0
    usage: Mapping[str, int] = {}
    waiting: Mapping[ObjectKey, tuple[str, WaitingShoot]] = {}


async def first_read(api: GardenApiClient) -> FirstRead:
    """Request all of it. Raises Unavailable, and the error of a response."""
    census = await api.census()
    usage: Mapping[str, int] = (await api.request("usage"))["seeds"]
    found: dict[str, Any] = await api.request("waiting", {"grouped": True})
    waiting: dict[ObjectKey, tuple[str, WaitingShoot]] = {}
    for each in found.get("reasons", ()):  # an older apiserver does not group them
        cause, brief = texts_of(each["message"])
        for namespace, name, since in each["shoots"]:
            shown = WaitingShoot(since, namespace, name, each["schedulerName"], brief)
            waiting[ObjectKey("shoot", namespace, name)] = (cause, shown)
    return FirstRead(census.get("objects.shoot", 0), found["total"], usage, waiting)
