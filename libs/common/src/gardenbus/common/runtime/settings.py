"""Settings: one frozen struct a service, from a YAML file and the environment, with all problems reported at once.

The field `nats_url` is the key `nats_url` of the file and the variable `GARDENBUS_NATS_URL` of the environment; the
environment wins. A service extends `CommonSettings` by its own fields and calls `load(ItsSettings, file)`.
"""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_type_hints

import msgspec
import yaml

from gardenbus.common.errors import SettingsInvalid

ENVIRONMENT_PREFIX = "GARDENBUS_"

LogFormat = Literal["auto", "json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Traces = Annotated[str, msgspec.Meta(pattern=r"^(auto|off|otlp|file:.+)$")]
Prefix = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]


def _instance() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"


class CommonSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of every service."""

    nats_url: Annotated[str, msgspec.Meta(pattern=r"^(nats|tls|ws|wss)://")] = "nats://127.0.0.1:4222"
    """URL of NATS. The default is the port that NATS documents."""

    nats_sync_always: bool = False
    """NATS syncs each write (`sync_interval: always`): messages then go in batches. Only speed depends on it."""

    redis_url: Annotated[str, msgspec.Meta(pattern=r"^(redis|rediss|unix)://")] = "redis://127.0.0.1:6379/0"
    """URL of Redis. The default is the port that Redis documents."""

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
    """Tells replicas apart in logs and leases; host name and process id unless given."""

    drain_seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 3.5
    """Longest wait of a stop for work in flight. With the rest of the stop a process is gone within 5 s."""


SettingsType = TypeVar("SettingsType", bound=CommonSettings)


def load(
    settings_type: type[SettingsType], file: Path | None = None, environ: Mapping[str, str] | None = None
) -> SettingsType:
    """Read settings from an optional YAML file and the environment (`os.environ` unless given).

    Raises SettingsInvalid with one line for each field that is wrong, missing or unknown, `path: message`.
    """
    environment = os.environ if environ is None else environ
    problems: list[str] = []
    given: dict[str, Any] = {}
    hints = get_type_hints(settings_type, include_extras=True)
    for name, value in _file_content(file, problems).items():
        if name in hints:
            _convert(given, name, value, annotation=hints[name], path=f"{file}: {name}", strict=True, problems=problems)
        else:
            problems.append(f"{file}: {name}: no such setting")
    for name, annotation in hints.items():
        variable = ENVIRONMENT_PREFIX + name.upper()
        if variable in environment:
            text = environment[variable]
            _convert(given, name, text, annotation=annotation, path=variable, strict=False, problems=problems)
    for field in msgspec.structs.fields(settings_type):
        if field.required and field.name not in given:
            variable = ENVIRONMENT_PREFIX + field.name.upper()
            if not any(field.name in problem or variable in problem for problem in problems):
                problems.append(f"{variable}: must be set (or {field.name} in the settings file)")
    if problems:
        raise SettingsInvalid(tuple(problems))
    return settings_type(**given)


def _convert(  # noqa: PLR0913 - one place reads a value from either source
    given: dict[str, Any],
    name: str,
    value: object,
    *,
    annotation: Any,
    path: str,
    strict: bool,
    problems: list[str],
) -> None:
    try:
        given[name] = msgspec.convert(value, annotation, strict=strict, dec_hook=_from_text)
    except msgspec.ValidationError as error:
        problems.append(f"{path}: {error}")


def _from_text(wanted: type, value: object) -> object:
    if wanted is Path and isinstance(value, str):
        return Path(value)
    raise TypeError(f"a setting of type {wanted.__name__} cannot be read")


def _file_content(file: Path | None, problems: list[str]) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        content: object = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        problems.append(f"{file}: cannot be read: {error.strerror}")
        return {}
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        problems.append(f"{file}: is no YAML: {' '.join(str(error).split())}")
        return {}
    if content is None:
        return {}
    if not isinstance(content, dict):
        problems.append(f"{file}: must be a mapping of settings")
        return {}
    return {str(name): value for name, value in cast("dict[object, object]", content).items()}
