"""The configuration file: Gardener's `SchedulerConfiguration`, read strictly.

Source: `pkg/apis/config/scheduler/v1alpha1` of Gardener; `schedulers.shoot.schedulerName` is ours.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
import yaml

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.resources.shoots import DEFAULT_SCHEDULER
from gardenbus.scheduling.landscape import SAME_REGION, STRATEGIES

API_VERSION = "scheduler.config.gardener.cloud/v1alpha1"
KIND = "SchedulerConfiguration"
LOG_LEVELS = ("debug", "info", "error")
LOG_FORMATS = ("json", "text")
_LARGEST_PORT = 65_535
_LONGEST_LABEL = 63


class SchedulerConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """What of the file has an effect; `ignored` are the paths of fields that are accepted without one."""

    strategy: str = SAME_REGION
    scheduler_name: str = DEFAULT_SCHEDULER
    log_level: str = "info"
    log_format: str = "json"
    ignored: tuple[str, ...] = ()


def parse_configuration(text: str | bytes) -> SchedulerConfiguration:
    """Read the file's content (YAML or JSON); raises SettingsInvalid with the path of everything that is wrong."""
    try:
        loaded: object = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsInvalid((f"the configuration is not YAML: {' '.join(str(error).split())[:300]}",)) from error
    if not isinstance(loaded, dict):
        raise SettingsInvalid((f"the configuration is no mapping but {type(loaded).__name__}",))
    fields = cast("dict[str, Any]", loaded)
    problems: list[str] = []
    found: dict[str, Any] = {}
    ignored: list[str] = []
    _walk(fields, _FIELDS, "", problems, found, ignored)
    problems += [
        f"{name}: must be {expected!r}, is {fields.get(name)!r}"
        for name, expected in (("apiVersion", API_VERSION), ("kind", KIND))
        if fields.get(name) != expected
    ]
    if problems:
        raise SettingsInvalid(tuple(problems))
    return SchedulerConfiguration(
        strategy=found.get("schedulers.shoot.candidateDeterminationStrategy") or SAME_REGION,
        scheduler_name=found.get("schedulers.shoot.schedulerName") or DEFAULT_SCHEDULER,
        log_level=found.get("logLevel") or "info",
        log_format=found.get("logFormat") or "json",
        ignored=tuple(ignored),
    )


Check = Callable[[Any], str]


def _text(value: Any) -> str:
    return "" if isinstance(value, str) else f"must be a text, is {value!r}"


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else f"must be true or false, is {value!r}"


def _count(value: Any) -> str:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return "" if is_count else f"must be a whole number above 0, is {value!r}"


def _number(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if is_number else f"must be a number, is {value!r}"


def _port(value: Any) -> str:
    is_port = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_PORT
    return "" if is_port else f"must be a port, is {value!r}"


def _one_of(*choices: str) -> Check:
    def check(value: Any) -> str:
        return "" if value in ("", *choices) else f"must be one of {', '.join(choices)}, is {value!r}"

    return check


def _label(value: Any) -> str:
    if not isinstance(value, str):
        return _text(value)
    is_label = len(value) <= _LONGEST_LABEL and all(part.isascii() and part.isalnum() for part in value.split("-"))
    return "" if is_label and value == value.lower() else f"must be a lower-case RFC 1123 label, is {value!r}"


def _flags(value: Any) -> str:
    is_flags = isinstance(value, dict) and all(
        isinstance(each, bool) for each in cast("dict[str, Any]", value).values()
    )
    return "" if is_flags else f"must be a map of names to true or false, is {value!r}"


class _Ignored:
    """A field that is accepted and checked, but has no effect here."""

    def __init__(self, check: Check) -> None:
        self.check = check


_FIELDS: Mapping[str, Any] = {
    "apiVersion": _text,
    "kind": _text,
    "clientConnection": {
        "kubeconfig": _Ignored(_text),
        "acceptContentTypes": _Ignored(_text),
        "contentType": _Ignored(_text),
        "qps": _Ignored(_number),
        "burst": _Ignored(_number),
    },
    "leaderElection": {
        "leaderElect": _Ignored(_flag),
        "leaseDuration": _Ignored(_text),
        "renewDeadline": _Ignored(_text),
        "retryPeriod": _Ignored(_text),
        "resourceLock": _Ignored(_text),
        "resourceName": _Ignored(_text),
        "resourceNamespace": _Ignored(_text),
    },
    "logLevel": _one_of(*LOG_LEVELS),
    "logFormat": _one_of(*LOG_FORMATS),
    "server": {
        "healthProbes": {"bindAddress": _Ignored(_text), "port": _Ignored(_port)},
        "metrics": {"bindAddress": _Ignored(_text), "port": _Ignored(_port)},
    },
    "debugging": {"enableProfiling": _Ignored(_flag), "enableContentionProfiling": _Ignored(_flag)},
    "featureGates": _Ignored(_flags),
    "schedulers": {
        "backupBucket": {"concurrentSyncs": _Ignored(_count)},
        "shoot": {
            "concurrentSyncs": _Ignored(_count),  # shoots are taken in batches instead
            "candidateDeterminationStrategy": _one_of(*STRATEGIES),
            "schedulerName": _label,
        },
    },
}


def _walk(
    fields: Mapping[str, Any],
    known: Mapping[str, Any],
    prefix: str,
    problems: list[str],
    found: dict[str, Any],
    ignored: list[str],
) -> None:
    for name, value in fields.items():
        path = f"{prefix}{name}"
        rule = known.get(name)
        if rule is None:
            problems.append(f"{path}: no such field")
        elif value is None:
            continue
        elif isinstance(rule, Mapping):
            if isinstance(value, dict):
                below = cast("dict[str, Any]", value)
                _walk(below, cast("Mapping[str, Any]", rule), f"{path}.", problems, found, ignored)
            else:
                problems.append(f"{path}: must be a mapping, is {value!r}")
        else:
            check = rule.check if isinstance(rule, _Ignored) else rule
            if problem := check(value):
                problems.append(f"{path}: {problem}")
            elif isinstance(rule, _Ignored):
                ignored.append(path)
            else:
                found[path] = value
