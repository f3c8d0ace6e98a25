"""Processes of a landscape, and how each is started. Pure."""

import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from gardenbus.cli.client.store_address import CLUSTER_REPLICAS, REPLICAS
from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.common.api.configuration.scheduler import PATH_SEPARATOR
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER

GARDENLETS_PER_PROCESS = 50
SCHEDULER = "scheduler"
SCALABLE = (
    "relay",
    "identity",
    "apiserver",
    "scheduler",
    "lifecycle",
    "controllermanager",
    "managedseedset",
    "autoscaler",
    "placement",
    "gardenlet",
    "memberagent",
)
"""Services that `--replicas` accepts: the dashboard and the Kubernetes API are one process each, on one port."""
MOST_REPLICAS = 100
STOP_ORDER: Sequence[frozenset[str]] = (
    frozenset(
        {
            "gardenlet",
            "memberagent",
            "lifecycle",
            "controllermanager",
            "managedseedset",
            "autoscaler",
            "placement",
            "scheduler",
            "apiserver",
            "dashboard",
            "kubeapi",
        }
    ),
    frozenset({"relay", "identity"}),
    frozenset({"sentinel"}),
    frozenset({"nats", "redis"}),
)
"""Groups in the order of stopping: nothing is stopped before those whose changes it still has to carry."""


class ProcessSpec(NamedTuple):
    """One process. `kind` selects its health check: over HTTP at the URL in a file, NATS', or Redis'."""

    name: str
    role: str
    command: Sequence[str]
    environ: Mapping[str, str]
    kind: Literal["service", "nats", "redis"] = "service"
    port: int | None = None
    """Port of Redis, or of NATS' monitoring."""

    path: str = ""
    """Path before the pages of NATS' monitoring."""
    url: str | None = None
    """Address for people."""
    store: Path | None = None
    """Directory that a server writes to."""
    socket: Path | None = None
    """Socket of Redis, unless it listens on its port."""
    user: str = ""
    """User of the readiness probe of Redis, unless it has no users."""
    password: str = ""
    """The user's."""


_SHARED = {"GARDENBUS_SHARED_CONNECTION": "true"}
_CLUSTERED = {"GARDENBUS_STREAM_REPLICAS": "3", REPLICAS: str(CLUSTER_REPLICAS)}


class Addresses(NamedTuple):
    """Addresses of the servers, for the services."""

    nats_url: str
    redis_url: str
    prefix: str
    nats_syncs_always: bool = False
    identity_of: Callable[[str], Mapping[str, str]] | None = None
    """Variables that say who a service is, by its role; None: nobody has an identity."""
    agents_share: bool = False
    """Nobody has an identity: certificates that agents have from an earlier start are of no use."""
    are_clustered: bool = False
    """Streams have three copies, and a write counts when a replica of Redis has it."""

    def environ(self, role: str) -> dict[str, str]:
        """The same as environment variables of a service."""
        return {
            **(self.identity_of(role) if self.identity_of else {}),
            **({"GARDENBUS_NATS_SYNC_ALWAYS": "true"} if self.nats_syncs_always else {}),
            **(_SHARED if self.agents_share and role in ("gardenlet", "memberagent") else {}),
            **(_CLUSTERED if self.are_clustered else {}),
            "GARDENBUS_NATS_URL": self.nats_url,
            "GARDENBUS_REDIS_URL": self.redis_url,
            "GARDENBUS_PREFIX": self.prefix,
        }


class Configurations(NamedTuple):
    """Configuration files that were written for the services."""

    schedulers: Mapping[str, Path]
    """By schedulerName; one of the default name is among them."""
    controller_manager: Path | None
    gardenlets: Sequence[Path]
    autoscaler: Path | None = None
    admission: Path | None = None
    member_agents: Sequence[Path] = ()
    strategy: str = "SameRegion"
    """The default scheduler's: by it a drained seed's shoots find others, and an autoscaler knows who fits a new."""


def service_specs(
    directory: LandscapeDirectory,
    *,
    addresses: Addresses,
    configurations: Configurations,
    replicas: Mapping[str, int],
    log_level: str | None = None,
) -> list[ProcessSpec]:
    """All services, in the order of their start. Agents without configurations are not started."""
    decides_as_schedulers = {
        "GARDENBUS_CANDIDATE_DETERMINATION_STRATEGY": configurations.strategy,
        "GARDENBUS_SCHEDULER_CONFIGURATIONS": PATH_SEPARATOR.join(map(str, configurations.schedulers.values())),
    }
    own_environ = {"managedseedset": decides_as_schedulers, "autoscaler": decides_as_schedulers}
    specs: list[ProcessSpec] = []
    for role, variants in _arguments(directory, addresses, configurations).items():
        runs = [(role, "", [variant for variant in variants for _ in range(replicas.get(role, 1))])]
        if role == SCHEDULER:
            runs = _scheduler_runs(configurations.schedulers, replicas)
        for base, suffix, commands in runs:
            for number, command in enumerate(commands, 1):
                name = f"{base if len(commands) == 1 else f'{base}-{number}'}{suffix}"
                specs.append(
                    ProcessSpec(
                        name=name,
                        role=role,
                        command=[sys.executable, "-m", f"gardenbus.{role}", *command],
                        environ=addresses.environ(role)
                        | _own_environ(directory, name, log_level)
                        | own_environ.get(role, {}),
                    )
                )
    return specs


def _arguments(
    directory: LandscapeDirectory, addresses: Addresses, configurations: Configurations
) -> Mapping[str, Sequence[Sequence[str]]]:
    """Arguments of the processes of each service, in the order of their start."""
    return {
        "relay": [[]],
        "identity": [[]] if addresses.identity_of else [],
        "apiserver": [_config(configurations.admission)],
        SCHEDULER: [],
        "lifecycle": [_config(configurations.controller_manager)],
        "controllermanager": [_config(configurations.controller_manager)],
        "managedseedset": [_config(configurations.controller_manager)],
        "autoscaler": [_config(configurations.autoscaler)],
        "placement": [[]],
        "gardenlet": [
            ["--config", str(file), "--state-dir", str(directory.gardenlets)] for file in configurations.gardenlets
        ],
        "memberagent": [
            ["--config", str(file), "--state-dir", str(directory.members)] for file in configurations.member_agents
        ],
    }


def _scheduler_runs(
    schedulers: Mapping[str, Path], replicas: Mapping[str, int]
) -> list[tuple[str, str, Sequence[Sequence[str]]]]:
    """Start, end and commands of the processes of each scheduler: `scheduler`, `scheduler@mine`, `scheduler-2@mine`."""
    return [
        (
            SCHEDULER,
            "" if name == DEFAULT_SCHEDULER else f"@{name}",
            [["--config", str(file)]] * replicas.get(scheduler_role(name), 1),
        )
        for name, file in schedulers.items()
    ]


def scheduler_role(name: str) -> str:
    """The role of a scheduler in `--replicas`."""
    return SCHEDULER if name == DEFAULT_SCHEDULER else f"{SCHEDULER}/{name}"


def unknown_schedulers(replicas: Mapping[str, int], schedulers: Iterable[str]) -> list[str]:
    """Schedulers that `--replicas` names and no configuration does."""
    roles = {scheduler_role(name) for name in schedulers}
    return sorted(role for role in replicas if role.startswith(f"{SCHEDULER}/") and role not in roles)


def dashboard_spec(
    directory: LandscapeDirectory, *, addresses: Addresses, host: str, port: int, log_level: str | None = None
) -> ProcessSpec:
    """The dashboard, on the port given; it connects to the bus only."""
    name = "dashboard"
    environ = {key: value for key, value in addresses.environ(name).items() if key != "GARDENBUS_REDIS_URL"}
    own = {
        "GARDENBUS_DASHBOARD_HOST": host,
        "GARDENBUS_DASHBOARD_PORT": str(port),
    }
    if addresses.identity_of:  # without identities nobody is anybody: there is nobody to log in as
        own["GARDENBUS_DASHBOARD_KEY_FILE"] = str(directory.dashboard_key)
    return ProcessSpec(
        name=name,
        role=name,
        command=[sys.executable, "-m", f"gardenbus.{name}"],
        environ=environ | _own_environ(directory, name, log_level) | own,
        url=f"http://{host}:{port}",
    )


def kubeapi_spec(
    directory: LandscapeDirectory, *, addresses: Addresses, host: str, port: int, log_level: str | None = None
) -> ProcessSpec:
    """The Kubernetes API, on the port given, with NATS' certificate; it connects to the bus only."""
    name, identity = "kubeapi", directory.identity
    environ = {key: value for key, value in addresses.environ(name).items() if key != "GARDENBUS_REDIS_URL"}
    own = {
        "GARDENBUS_KUBEAPI_HOST": host,
        "GARDENBUS_KUBEAPI_PORT": str(port),
        "GARDENBUS_KUBEAPI_CERTIFICATE": str(identity / "server.crt"),
        "GARDENBUS_KUBEAPI_KEY": str(identity / "server.key"),
        "GARDENBUS_KUBEAPI_CLIENT_CA": str(identity / "ca.crt"),
    }
    return ProcessSpec(
        name=name,
        role=name,
        command=[sys.executable, "-m", f"gardenbus.{name}"],
        environ=environ | _own_environ(directory, name, log_level) | own,
        url=f"https://{host}:{port}",
    )


def _config(file: Path | None) -> Sequence[str]:
    return ["--config", str(file)] if file else []


def _own_environ(directory: LandscapeDirectory, name: str, log_level: str | None) -> dict[str, str]:
    return {
        "GARDENBUS_HEALTH_FILE": str(directory.health / f"{name}.json"),
        "GARDENBUS_HEALTH_PORT": "0",
        "GARDENBUS_HEALTH_HOST": "127.0.0.1",
        "GARDENBUS_LOG_FORMAT": "json",
        **({"GARDENBUS_LOG_LEVEL": log_level} if log_level else {}),
    }


def parse_replicas(values: Sequence[str]) -> dict[str, int]:
    """Read `scheduler=2`, `scheduler/mine=2` …; raises ValueError, saying what is wrong."""
    replicas: dict[str, int] = {}
    for value in values:
        role, _, count = value.partition("=")
        service, slash, scheduler = role.partition("/")
        if service == SCHEDULER and scheduler:
            role = scheduler_role(scheduler)
        elif slash or role not in SCALABLE:
            raise ValueError(f"{value!r}: {role!r} is no service; there are {', '.join(SCALABLE)}")
        if not count.isdecimal():
            raise ValueError(f"{value!r}: write it as {role}=2")
        if len(count) > len(str(MOST_REPLICAS)) or int(count) > MOST_REPLICAS:
            raise ValueError(f"{role}: at most {MOST_REPLICAS} replicas of a service are started on a machine")
        replicas[role] = int(count)
    return replicas


def in_groups(count: int, largest: int = GARDENLETS_PER_PROCESS) -> list[slice]:
    """Slices of gardenlets, one a process: as few processes as possible, evenly filled."""
    groups = -(-count // largest)
    bounds = [count * number // groups for number in range(groups + 1)] if groups else []
    return [slice(start, end) for start, end in itertools.pairwise(bounds)]
