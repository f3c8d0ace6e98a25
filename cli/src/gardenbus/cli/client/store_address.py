"""Address of a landscape's store: commands that examine it or back it up read Redis itself."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile, default_directory
from gardenbus.common.adapters.addresses import check_redis_url
from gardenbus.common.errors import BadRequest
from gardenbus.common.runtime.settings import CommonSettings, load

if TYPE_CHECKING:
    from gardenbus.common.adapters.redis.access import RedisAccess
    from gardenbus.common.adapters.redis.connection import RedisConnection


REPLICAS = "GARDENBUS_REDIS_REPLICAS"
MAX_REPLICAS = 16
CLUSTER_REPLICAS = 1
"""The same in a landscape of `up --cluster`."""


def given_settings(*variables: str) -> CommonSettings:
    """These variables of the environment, as services read them. Raises SettingsInvalid."""
    return load(CommonSettings, {name: value for name, value in os.environ.items() if name in variables})


def local_landscape(where: LandscapeTarget, directory: Path | None) -> LandscapeFile | None:
    """The file of a landscape on this machine, if that is the one that is meant."""
    landscape = LandscapeDirectory(where.directory or directory or default_directory()).read()
    return landscape if landscape is not None and landscape.nats_url == where.nats_url else None


def redis_url_of(landscape: LandscapeFile | None, redis_url: str | None) -> str | None:
    """Address of Redis: as given, the landscape's own, or GARDENBUS_REDIS_URL. Raises BadRequest if it is none."""
    chosen = redis_url or (landscape.redis_url if landscape else os.environ.get("GARDENBUS_REDIS_URL"))
    if chosen:
        check_redis_url(chosen, "" if redis_url or landscape else "GARDENBUS_REDIS_URL: ")
    return chosen


def connect_store(where: LandscapeTarget, directory: Path | None, redis_url: str | None) -> "RedisConnection":
    """Open a connection to the store, whose writes wait for replicas as those of the landscape's services do.

    Raises BadRequest when nothing says where it is.
    """
    from gardenbus.common.adapters.redis.connection import RedisConnection  # noqa: PLC0415  slow to import

    local = local_landscape(where, directory)
    chosen = redis_url_of(local, redis_url)
    if not chosen:
        raise BadRequest("where is Redis? Name it with --redis-url, or in GARDENBUS_REDIS_URL")
    is_cluster = local is not None and chosen == local.redis_url and "redis-1" in local.ports
    replicas = _replicas(os.environ.get(REPLICAS, "")) or is_cluster * CLUSTER_REPLICAS
    return RedisConnection(chosen, where.prefix, access=store_access(), replicas=replicas)


def store_access() -> "RedisAccess":
    """The files by which services come in at Redis, as the environment names them."""
    from gardenbus.common.adapters.redis import access  # noqa: PLC0415  slow to import

    variables = (access.PASSWORD_FILE, access.CA, access.SENTINEL_PASSWORD_FILE)
    return access.RedisAccess(*(os.environ.get(variable, "") for variable in variables))


def _replicas(number: str) -> int:
    """Replicas that must have a write, as the services' setting says it. Raises BadRequest."""
    if number and not (number.isdecimal() and int(number) <= MAX_REPLICAS):
        raise BadRequest(f"{REPLICAS} is {number!r}: write a number from 0 to {MAX_REPLICAS}")
    return int(number or 0)
