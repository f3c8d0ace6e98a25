"""Settings: one frozen struct a service, from the environment, with all problems reported at once.

The field `nats_url` is the variable `GARDENBUS_NATS_URL`. A service extends `CommonSettings` by its own fields, each
with a default, and calls `load(ItsSettings)`.
"""

import os
import socket
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from gardenbus.common.adapters.addresses import check_nats_url, check_redis_url
from gardenbus.common.errors import BadRequest, SettingsInvalid

ENVIRONMENT_PREFIX = "GARDENBUS_"

LogFormat = Literal["auto", "json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Traces = Annotated[str, msgspec.Meta(pattern=r"^(auto|off|otlp|file:.+)$")]
NatsUrl = Annotated[str, msgspec.Meta(pattern=r"^(nats|tls|ws|wss)://", examples=["nats://nats.example.org:4222"])]
RedisUrl = Annotated[
    str, msgspec.Meta(pattern=r"^(rediss?|rediss?\+sentinel|unix)://", examples=["redis://redis.example.org:6379/0"])
]
Prefix = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]

Shortcut = Literal["hints", "held-pages", "fetching-ahead"]
Shortcuts = Annotated[
    str, msgspec.Meta(pattern=rf"^(({'|'.join(get_args(Shortcut))})(,|$))*$", examples=["hints,held-pages"])
]


def _instance() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"


class CommonSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of every service."""

    nats_url: NatsUrl = "nats://127.0.0.1:4222"
    """URL of NATS, or several of one cluster with commas between them. The default is the port that NATS documents."""

    stream_replicas: Literal[0, 1, 3, 5] | None = None
    """Copies of each stream in a NATS cluster; 0 for 3 if there is one. Unset: 1, or what an operator has set."""

    nats_credentials: str = ""
    """File with this service's credentials: an nkey seed, a certificate with its key, or user and password as JSON."""

    nats_ca: str = ""
    """File of the authorities that NATS' certificate may be of; with it, connections use TLS."""

    nats_sync_always: bool = False
    """NATS syncs each write (`sync_interval: always`): messages then go in batches. Only speed depends on it."""

    redis_url: RedisUrl = "redis://127.0.0.1:6379/0"
    """URL of Redis, of several servers (`redis://h1,h2/0`), or of Sentinels (`redis+sentinel://h1,h2,h3/name`)."""

    redis_replicas: Annotated[int, msgspec.Meta(ge=0, le=16)] = 0
    """Replicas of Redis that must have a write before it is acknowledged; less than that is Unavailable."""

    redis_password_file: str = ""
    """File with the password of the user that `GARDENBUS_REDIS_URL` names; read at each connect."""

    redis_sentinel_password_file: str = ""
    """File with the password of the `sentinel_username` in `GARDENBUS_REDIS_URL`; read at each connect."""

    redis_ca: str = ""
    """File of the authorities that Redis' certificate may be of, for a `rediss://` URL."""

    prefix: Prefix = "garden"
    """First token of every subject and key, so that landscapes can share servers."""

    log_format: LogFormat = "auto"
    """`auto` writes JSON unless stdout is a terminal."""

    log_level: LogLevel = "info"
    """The least severe level that is written."""

    health_host: str = "127.0.0.1"
    """Address of /livez, /readyz and /metrics. Loopback, as they need no credentials; 0.0.0.0 in a container."""

    health_port: Port = 0
    """0 uses a free port and logs it (also to GARDENBUS_HEALTH_FILE), so that replicas never collide."""

    traces: Traces = "auto"
    """Destination of spans: `otlp` (a collector, by OTEL_*), `file:PATH`, `off`; `auto`: `otlp` if OTEL_* name one."""

    instance: str = msgspec.field(default_factory=_instance)
    """Distinguishes replicas in logs and leases; host name and process id unless given."""

    watchdog_seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 10.0
    """Processor time that the process may compute without returning to its event loop; then it is ended. 0: any."""

    disabled_shortcuts: Shortcuts = ""
    """Shortcuts that are not taken, with commas between: `hints`, `held-pages`, `fetching-ahead`. Only time depends on
    them: this is for measuring what each buys."""

    drain_seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 3.5
    """Longest wait of a stop for work in flight. With the rest of the stop a process is gone within 5 s."""

    def takes(self, shortcut: Shortcut) -> bool:
        """True unless a shortcut is disabled."""
        return shortcut not in self.disabled_shortcuts.split(",")


_CHECKS = {"nats_url": check_nats_url, "redis_url": check_redis_url}

SettingsType = TypeVar("SettingsType", bound=CommonSettings)


def load(settings_type: type[SettingsType], environ: Mapping[str, str] | None = None) -> SettingsType:
    """Read settings from the environment (`os.environ` unless given).

    Raises SettingsInvalid with one line for each variable that is wrong, `variable: message`.
    """
    environment = os.environ if environ is None else environ
    problems: list[str] = []
    given: dict[str, Any] = {}
    for name, annotation in get_type_hints(settings_type, include_extras=True).items():
        variable = ENVIRONMENT_PREFIX + name.upper()
        if variable in environment:
            try:
                given[name] = msgspec.convert(environment[variable], annotation, strict=False)
                if check := _CHECKS.get(name):
                    check(given[name])
            except msgspec.ValidationError as error:
                problems.append(f"{variable}: {_problem(environment[variable], annotation, error)}")
            except BadRequest as error:
                problems.append(f"{variable}: {error.message}")
    if problems:
        raise SettingsInvalid(tuple(problems))
    return settings_type(**given)


def _problem(value: str, annotation: Any, error: msgspec.ValidationError) -> str:
    """Describe what is wrong, and a valid value; one of which there is an example may hold a password: not shown."""
    if examples := [each for meta in getattr(annotation, "__metadata__", ()) for each in meta.examples or ()]:
        return f"{error}; it looks like {examples[0]}"
    literals = [each for each in (annotation, *get_args(annotation)) if get_origin(each) is Literal]
    choices = [choice for each in literals for choice in get_args(each)] or ["true", "false"] * (annotation is bool)
    return f"{value!r} is none of {', '.join(map(str, choices))}" if choices else f"{value!r}: {error}"
