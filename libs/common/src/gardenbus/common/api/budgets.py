"""Budgets: what one principal may hold at the same time. Pure.

The ConfigMap `garden/budgets` changes the defaults, for all and for some; only operators write there:

data:
  budgets: |
    default: {watches: 32}
    users: {ann@example.org: {requestsInFlight: 1000}}
    groups: {"gardener.cloud:system:seeds": {connections: 8}}
    projects: {dev: {bytesInFlight: 64Mi}}

Each limit of a principal is that of its user; else the highest of its groups; else the highest of the Projects that it
is a member of; else the default one. What is stored is held by a Project: of Projects that one's limit counts alone.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any

import msgspec

from gardenbus.common.api.configuration import reader
from gardenbus.common.api.configuration.reader import Field, Table
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.api.manifests.parser import read_object
from gardenbus.common.api.quantities import parse_quantity
from gardenbus.common.errors import BadRequest, FieldProblem, Forbidden, InvalidResource, TooManyRequests

BUDGETS = ObjectKey("configmap", GARDEN_NAMESPACE, "budgets")
BUDGETS_ENTRY = "budgets"
"""Key of its data, whose value is YAML or JSON."""

_MOST = 2**40
_SCOPES = ("users", "groups", "projects")


class Budget(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Limits of one principal. None of them is met by a tenant who works."""

    bytes_in_flight: int = 32 * 1024 * 1024
    """Bytes of requests at one apiserver that have no response yet."""

    requests_in_flight: int = 500
    """Requests at one apiserver that have no response yet, without watches."""

    waiting_bytes: int = 256 * 1024 * 1024
    """Bytes of messages sent that have not been handled yet, by what the servers say of connections."""

    connections: int = 64
    """Connections to NATS."""

    agents_connections: int = 3
    """The same of a gardenlet, member agent or extension for which no number is set, as each holds up to `max_pending`
    of memory: one, one of its replacement, and one that is about to end."""

    schedulers_connections: int = 8
    """The same of a scheduler of one's own: one for each replica, and those that are about to end."""

    watches: int = 16
    """Watches at one apiserver."""

    sessions: int = 20
    """Logins to the dashboard that have not ended."""

    pages: int = 20
    """Pages of one dashboard that are open, and follow what changes."""

    stored_objects: int = 100_000
    """Objects that a Project holds in the store."""

    stored_bytes: int = 256 * 1024 * 1024
    """Bytes of these objects as they are stored (most are compressed), without their status."""


LIMITS: Mapping[str, str] = {field.encode_name: field.name for field in msgspec.structs.fields(Budget)}
"""Attribute of each limit by its name in settings and messages."""

BYTE_LIMITS = frozenset(name for name in LIMITS if "ytes" in name)
"""Limits that are given as quantities (`64Mi`)."""

STORED_LIMITS = ("storedObjects", "storedBytes")
"""Limits of what a Project holds in the store."""

DEFAULT_BUDGET = Budget()

_FEW_CONNECTIONS: Mapping[str, Callable[[Budget], int]] = {
    "scheduler": attrgetter("schedulers_connections"),
    **dict.fromkeys(
        ("gardenlet", "member-agent", "extension", "plugin", "bootstrap"), attrgetter("agents_connections")
    ),
}
"""Connections of those who are no persons, by role, unless another number is set for them."""


class Budgets(msgspec.Struct, frozen=True, kw_only=True):
    """The budgets of a landscape: the default one, and by name of user, group and Project the limits that differ."""

    default: Budget = DEFAULT_BUDGET
    users: Mapping[str, Mapping[str, int]] = {}
    groups: Mapping[str, Mapping[str, int]] = {}
    projects: Mapping[str, Mapping[str, int]] = {}

    def of(
        self, user: str, groups: Collection[str] = (), projects: Collection[str] = (), *, role: str = "user"
    ) -> Budget:
        """The budget of a user with these groups, who is a member of these Projects; agents get few connections."""
        few = _FEW_CONNECTIONS.get(role)
        own = self.users.get(user, {})
        if few is None and not own and not self.groups and not self.projects:
            return self.default
        limits = {
            **_highest(self.projects[name] for name in projects if name in self.projects),
            **_highest(self.groups[name] for name in groups if name in self.groups),
            **own,
        }
        budget = msgspec.structs.replace(self.default, **limits)
        if few is None or "connections" in limits:
            return budget
        return msgspec.structs.replace(budget, connections=min(few(budget), budget.connections))


class LimitUse(msgspec.Struct, frozen=True):
    """Amount of a limit that a user holds in one process, and the most that it may hold there."""

    user: str
    limit: str
    held: int
    most: int

    @property
    def share(self) -> float:
        """Share of the limit that is used up."""
        return self.held / self.most


class OverBudget(TooManyRequests):
    """One principal holds as much as its budget allows; `limit` is the name of what is used up."""

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


def over_budget(user: str, limit: str, most: int, suggestion: str) -> OverBudget:
    """The error for a principal that holds as much of something as it may."""
    used = f"{user or 'nobody'!r} has used up its budget of {limit} ({shown_limit(limit, most)})"
    return OverBudget(f"{used}: {suggestion}", limit)


class StoredOverBudget(Forbidden):
    """A Project holds as much in the store as its budget allows; `limit` is the name of what is used up."""

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


def over_stored_budget(namespace: str, limit: str, held: int, most: int) -> StoredOverBudget:
    """The error for a write with which a namespace would hold more than it may."""
    used = f"{shown_limit(limit, held)} of {shown_limit(limit, most)}"
    suggestion = f"delete objects there, or have an operator set a higher limit in the ConfigMap {BUDGETS}"
    return StoredOverBudget(
        f"namespace {namespace!r} has used up its budget of {limit} ({used} used): {suggestion}", limit
    )


def shown_limit(limit: str, value: int) -> str:
    """The value of a limit as it is written in settings."""
    if limit in BYTE_LIMITS:
        for unit, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if value and not value % size:
                return f"{value // size}{unit}"
    return f"{value:,}"


def budgets_of(config_map: Document | None) -> Budgets:
    """The budgets that the ConfigMap sets; the defaults without one. Raises InvalidResource with the fields."""
    path = f"data[{BUDGETS_ENTRY}]"
    text = section(config_map or {}, "data").get(BUDGETS_ENTRY)
    if not text:
        return Budgets()
    try:
        given = read_object(str(text).encode(), "must be a mapping with default, users, groups and projects")
    except BadRequest as error:
        raise InvalidResource(f"{path}: {error.message}", (FieldProblem(path, error.message),)) from error
    problems: list[str] = [f"{name}: no such field" for name in given if name not in ("default", *_SCOPES)]
    default = _limits(given.get("default"), "default", problems)
    scopes = {scope: _scope(given.get(scope), scope, problems) for scope in _SCOPES}
    if problems:
        found = tuple(FieldProblem(f"{path}.{field}", text) for field, _, text in (p.partition(": ") for p in problems))
        raise InvalidResource("; ".join(f"{each.field}: {each.message}" for each in found), found)
    return Budgets(default=msgspec.structs.replace(DEFAULT_BUDGET, **default), **scopes)


def _scope(given: Any, scope: str, problems: list[str]) -> Mapping[str, Mapping[str, int]]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        problems.append(f"{scope}: must be a mapping of names to limits")
        return {}
    names: Document = given  # pyright: ignore[reportUnknownVariableType]
    return {name: _limits(limits, f"{scope}[{name}]", problems) for name, limits in names.items()}


def _limits(given: Any, path: str, problems: list[str]) -> Mapping[str, int]:
    reading = reader.read(given or {}, _TABLE)
    problems += [
        f"{path}: {each.partition(': ')[2]}" if each.startswith("configuration: ") else f"{path}.{each}"
        for each in reading.problems
    ]
    return reading.values


def _highest(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    highest: dict[str, int] = {}
    for limits in found:
        for name, value in limits.items():
            highest[name] = max(value, highest.get(name, 0))
    return highest


def _bytes(value: Any) -> int:
    if not isinstance(value, str | int):
        raise ValueError(f"must be a quantity such as 64Mi, is {value!r}")  # noqa: TRY004  one error for all
    return _checked(int(parse_quantity(value)), value)


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"must be a whole number, is {value!r}")  # noqa: TRY004  one error for all
    return _checked(value, value)


def _checked(number: int, value: Any) -> int:
    if not 1 <= number <= _MOST:
        raise ValueError(f"must be from 1 to {shown_limit('bytes', _MOST)}, is {value!r}")
    return number


_TABLE: Table = {
    name: Field(attribute, _bytes if name in BYTE_LIMITS else _count) for name, attribute in LIMITS.items()
}
