"""One shoot's control plane as processes, and its directory, which is the owner's alone.

    <directory>/cluster.json          its parameters and ports, and which components shall run
    <directory>/pki/                  keys, certificates and kubeconfigs
    <directory>/etcd/                 the data of etcd
    <directory>/etcd-events/          the data of the etcd of Events, which nobody backs up or restores
    <directory>/etcd.damaged/         what etcd could not read, once it was restored, or has left of a first start
    <directory>/spool.jsonl           its changes since the latest backup, see `delta_files`
    <directory>/logs/<component>.log

Processes are found again by their arguments, all of which name this directory: after the gardenlet was killed, at
whatever line, none of them is lost, and none is started twice.
"""

import asyncio
import os
import secrets
import shutil
import signal
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

import msgspec
import structlog

from gardenbus.agent.files import make_directory, replace_file
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.pki import Secrets, write_keys, write_kubeconfig
from gardenbus.gardenlet.backend.processes.binaries import Programs
from gardenbus.gardenlet.backend.processes.child import ComponentProcess, Running, running_below, spawn
from gardenbus.gardenlet.domain.control_plane import (
    ETCD,
    EVENTS_ETCD,
    PORTS,
    ClusterParameters,
    Component,
    Location,
    api_server_url,
    certificates,
    component_of,
    control_plane,
    kubeconfig_files,
)
from gardenbus.gardenlet.domain.etcd_damage import etcd_damage
from gardenbus.gardenlet.domain.shoot_record import ShootName

_log = structlog.stdlib.get_logger()

ADDRESS = "127.0.0.1"
PORT_IN_USE = "address already in use"
_LAST_SIGNS = ('"level":"fatal"', "panic: ", "fatal error: ")
STOP_SECONDS = 10.0
"""Time that a component has to end by itself."""

LARGEST_LOG_BYTES = 16 * 2**20
_LAST_LIFE_BYTES = 2**18
_LEAST_RESTARTS = 2
"""Times that an etcd has to end before its data counts as damaged."""

_POLL_SECONDS = 0.05
_PORT_RANGE = range(20_000, 32_000)
"""Below the ports that outgoing connections are given (from 32768)."""

_LONG_LIFE_SECONDS = 600.0
_BACKOFF = Backoff(base_seconds=1.0, cap_seconds=60.0)


class ClusterState(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of a control plane that are kept beside its keys and data. `running`: components that shall run."""

    uid: str
    parameters: ClusterParameters
    ports: dict[str, int]
    running: tuple[str, ...] = ()
    has_data: bool = False
    """etcd has been ready here: when its data is gone, it was lost."""

    shoot: ShootName = ("", "")
    maintenance: Document = {}
    """`spec.maintenance` of the Shoot, for the times of its backups and defragmentations."""

    defragmented_at: dict[str, datetime] = {}
    """The latest defragmentation of each etcd."""


class Cluster:
    """See the module. `owned` is held for each start and end of a process, and raises StaleFencingToken."""

    def __init__(
        self,
        directory: Path,
        *,
        clock: Clock,
        owned: Callable[[], AbstractContextManager[None]],
        programs: Programs = {},
    ) -> None:
        self.directory = directory
        self.programs = programs
        self._clock = clock
        self._owned = owned
        self._children: dict[str, Running] = {}
        self._started_at: dict[str, float] = {}
        self._restarts: dict[str, int] = {}
        self._restart_at: dict[str, float] = {}
        self.busy = asyncio.Lock()
        """Held by a step while it starts and ends components; `tend` leaves them alone meanwhile."""
        self.state = self._load()

    @property
    def keys(self) -> Path:
        """Directory of keys and certificates."""
        return self.directory / "pki"

    @property
    def data(self) -> Path:
        """Directory of etcd's data."""
        return self.directory / "etcd"

    @property
    def events(self) -> Path:
        """Directory of the data of the etcd of Events."""
        return self.directory / EVENTS_ETCD

    @property
    def damaged(self) -> Path:
        """Directory of data that etcd could not read, kept for whoever wants to know why."""
        return self.directory / "etcd.damaged"

    @property
    def is_empty(self) -> bool:
        """True if there is no data of etcd, or not all of it."""
        member = self.data / "member"
        return not ((member / "wal").is_dir() and (member / "snap" / "db").is_file())

    @property
    def has_lost_data(self) -> bool:
        """True if data of etcd was here, and is gone: nothing is started before it is restored."""
        return self.state is not None and self.state.has_data and self.is_empty

    @property
    def damage(self) -> str | None:
        """Sign that etcd cannot read its data, if it ended with one more than once; else None."""
        state = self.state
        if state is None or ETCD not in state.running or self.child(ETCD) is not None or not state.has_data:
            return None
        return etcd_damage(self._log_end(ETCD, _LAST_LIFE_BYTES)) if self.restarts(ETCD) >= _LEAST_RESTARTS else None

    @property
    def spool(self) -> Path:
        """File of changes since the latest backup."""
        return self.directory / "spool.jsonl"

    @property
    def where(self) -> Location:
        """Address, ports and directories."""
        assert self.state is not None
        return Location(ADDRESS, self.state.ports, str(self.keys), str(self.data), str(self.events))

    @property
    def url(self) -> str:
        """URL of the API server."""
        return api_server_url(self.where)

    def components(self, names: Collection[str]) -> Sequence[Component]:
        """Those components of the plan that have one of these names, in the order of their start."""
        assert self.state is not None
        return [each for each in control_plane(self.state.parameters, self.where) if each.name in names]

    def program(self, name: str) -> Path:
        """A program of its version. Raises FileNotFoundError where the seed has that version no longer."""
        if name not in self.programs:
            version = self.state.parameters.version if self.state else "without a version"
            raise FileNotFoundError(f"there are no programs of Kubernetes {version} here")
        return self.programs[name]

    # ------------------------------------------------------------------------------------------ directory

    def establish(
        self, uid: str, parameters: ClusterParameters, *, shoot: ShootName = ("", ""), maintenance: Document = {}
    ) -> None:
        """Make the directory, and keep parameters and ports. Raises StaleFencingToken."""
        ports = dict(self.state.ports) if self.state else {}
        missing = [name for name in PORTS if name not in ports]
        for name in missing:
            ports[name] = _free_port(ports.values())
        state = self.state or ClusterState(uid=uid, parameters=parameters, ports=ports)
        self._keep(
            msgspec.structs.replace(
                state, uid=uid, parameters=parameters, ports=ports, shoot=shoot, maintenance=maintenance
            )
        )

    def write_keys(self, made: Secrets) -> list[str]:
        """Write keys, certificates and kubeconfigs; returns the names of new certificates. Raises StaleFencingToken."""
        assert self.state is not None
        with self._owned():
            wanted = certificates(self.state.parameters, ADDRESS)
            issued = write_keys(self.keys, made, wanted, self._clock.now())
            for name in kubeconfig_files(self.state.parameters):
                write_kubeconfig(self.keys, name, self.url)
        return issued

    def remove_data(self) -> None:
        """Remove the data of the etcds, which have ended. Raises StaleFencingToken."""
        self.note_data(present=False)
        with self._owned():
            shutil.rmtree(self.data, ignore_errors=True)
            shutil.rmtree(self.damaged, ignore_errors=True)
            shutil.rmtree(self.events, ignore_errors=True)
            self.spool.unlink(missing_ok=True)

    def set_data_aside(self) -> None:
        """Move data that etcd cannot read out of its way. Raises StaleFencingToken."""
        with self._owned():
            shutil.rmtree(self.damaged, ignore_errors=True)
            self.data.rename(self.damaged)
        self._restarts.pop(ETCD, None)

    def set_unused_data_aside(self) -> None:
        """Do so with what an etcd has left that ended before it was ready for the first time: nobody wrote to it.

        It may be half made, and is restored or made anew. Raises StaleFencingToken.
        """
        was_ready = self.state is not None and self.state.has_data
        if self.data.exists() and not was_ready and self.child(ETCD) is None:
            self.set_data_aside()

    def note_data(self, *, present: bool) -> None:
        """Keep whether there is data that must not get lost. Raises StaleFencingToken."""
        if self.state is not None:
            self._keep(msgspec.structs.replace(self.state, has_data=present))

    def note_defragmented(self, name: str, now: datetime) -> None:
        """Keep when an etcd was defragmented. Raises StaleFencingToken."""
        if self.state is not None:
            at = {**self.state.defragmented_at, name: now}
            self._keep(msgspec.structs.replace(self.state, defragmented_at=at))

    def adopt_data(self, restored: Path) -> None:
        """Take a directory as the data of etcd, in place of what is left of an older one. Raises StaleFencingToken."""
        with self._owned():
            shutil.rmtree(self.data, ignore_errors=True)
            restored.rename(self.data)
            self.spool.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the directory: nothing of it runs any more. Raises StaleFencingToken."""
        with self._owned():
            shutil.rmtree(self.directory, ignore_errors=True)
        self.state = None

    def choose_other_ports(self) -> None:
        """Take other ports for whatever does not run. Raises StaleFencingToken."""
        assert self.state is not None
        taken = {name: port for name, port in self.state.ports.items() if _is_of(name, self._alive())}
        for name in self.state.ports:
            if name not in taken:
                taken[name] = _free_port((*taken.values(), *self.state.ports.values()))
        self._keep(msgspec.structs.replace(self.state, ports=taken))
        if self.keys.is_dir():
            for name in kubeconfig_files(self.state.parameters):
                write_kubeconfig(self.keys, name, self.url)

    def _load(self) -> ClusterState | None:
        try:
            return decode_json((self.directory / "cluster.json").read_bytes(), ClusterState)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            _log.warning("control_plane.unreadable", directory=str(self.directory), reason=str(error))
            return None

    def _keep(self, state: ClusterState) -> None:
        if state == self.state:
            return
        with self._owned():
            make_directory(self.directory / "logs")
            replace_file(self.directory / "cluster.json", msgspec.json.encode(state))
        self.state = state

    # ------------------------------------------------------------------------------------------ processes

    def find_survivors(self) -> None:
        """Find what runs of this control plane, whoever started it."""
        for running in running_below(self.directory):
            if not running.child.leads_session:
                continue  # forked by a component, with its arguments, and about to be something else
            if (name := component_of(running.arguments)) is not None:
                self._children[name] = running

    def child(self, name: str) -> ComponentProcess | None:
        """The process of a component, if it runs."""
        running = self._children.get(name)
        return running.child if running is not None and running.child.is_alive else None

    def restarts(self, name: str) -> int:
        """Number of times that a component was started anew since it last lived for ten minutes."""
        return self._restarts.get(name, 0)

    async def start(self, component: Component) -> None:
        """Have a component run with these very arguments. Raises StaleFencingToken, OSError."""
        assert self.state is not None
        if component.name not in self.state.running:
            self._keep(msgspec.structs.replace(self.state, running=(*self.state.running, component.name)))
        await self.run(component)

    async def run(self, component: Component) -> None:
        """Have a component run for now; whoever tends it later goes by what was started. Raises as `start` does."""
        running = self._children.get(component.name)
        if running is not None and running.child.is_alive:
            if running.arguments[-len(component.arguments) :] == component.arguments:
                return
            await self.end([component.name])
        self._spawn(component)

    async def stop(self, names: Collection[str]) -> None:
        """End components, and forget that they shall run. Raises StaleFencingToken."""
        if self.state is None:
            return
        left = tuple(name for name in self.state.running if name not in names)
        self._keep(msgspec.structs.replace(self.state, running=left))
        await self.end(names)

    async def end_all(self) -> None:
        """End whatever runs; it is started again by the next owner. Raises StaleFencingToken."""
        with self._owned():
            for component in self._alive().values():
                component.signal(signal.SIGTERM)
        await self.end(tuple(self._children))

    def tend(self) -> bool:
        """Start anew what has ended though it shall run, each time a little later; returns whether something had.

        Raises StaleFencingToken, OSError.
        """
        if self.state is None or self.busy.locked() or self.has_lost_data:
            return False
        now, found = self._clock.monotonic(), False
        for component in self.components(self.state.running):
            name = component.name
            if self.child(name) is not None:
                if now - self._started_at.setdefault(name, now) > _LONG_LIFE_SECONDS:
                    self._restarts.pop(name, None)
                self._trim_log(name)
                continue
            if now < self._restart_at.get(name, 0.0):
                continue
            count = self._restarts[name] = self._restarts.get(name, 0) + 1
            self._restart_at[name] = now + _BACKOFF.longest_seconds(count)
            _log.warning("component.restarted", component=name, directory=str(self.directory), restarts=count)
            self._spawn(component)
            found = True
        return found

    def last_words(self, name: str) -> str:
        """The line of a component's log that says why it ended, or else the last one."""
        lines = self._log_end(name, 2**16).strip().splitlines()
        if not lines:
            return ""
        for signs in ((PORT_IN_USE,), _LAST_SIGNS):
            found = next((line for line in reversed(lines) if any(sign in line for sign in signs)), None)
            if found is not None:
                end = found.find(PORT_IN_USE) + len(PORT_IN_USE)  # etcd's line goes on with a stack trace
                return found[max(0, end - 300) : end] if PORT_IN_USE in found else found[:300]
        return lines[-1][-300:]

    def _log_end(self, name: str, size: int) -> str:
        try:
            with (self.directory / "logs" / f"{name}.log").open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - size))
                return log.read().decode(errors="replace")
        except OSError:
            return ""

    def _spawn(self, component: Component) -> None:
        program = self.program(component.program)
        environment = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        with self._owned():
            if component.name == EVENTS_ETCD and (damage := etcd_damage(self._log_end(EVENTS_ETCD, _LAST_LIFE_BYTES))):
                _log.warning("etcd.events_dropped", shoot=self.directory.name, reason=damage)
                shutil.rmtree(self.events, ignore_errors=True)
            child = spawn(
                program,
                component.arguments,
                environment={**environment, **component.environment},
                log=self.directory / "logs" / f"{component.name}.log",
            )
            self._children[component.name] = Running(child, (str(program), *component.arguments))
        self._started_at[component.name] = self._clock.monotonic()

    async def end(self, names: Collection[str]) -> None:
        """End components that shall go on running later, in the reverse of their order. Raises StaleFencingToken."""
        order = [name for name in reversed(PORTS) if name in names]
        for name in order:
            child = self.child(name)
            if child is not None:
                await self._end_one(child)
            self._children.pop(name, None)

    async def _end_one(self, child: ComponentProcess) -> None:
        deadline = self._clock.monotonic() + STOP_SECONDS
        with self._owned():
            child.signal(signal.SIGTERM)
        while child.is_alive:
            if self._clock.monotonic() > deadline:
                with self._owned():
                    child.signal(signal.SIGKILL)
            await self._clock.sleep(_POLL_SECONDS)

    def _alive(self) -> Mapping[str, ComponentProcess]:
        return {name: running.child for name, running in self._children.items() if running.child.is_alive}

    def _trim_log(self, name: str) -> None:
        log = self.directory / "logs" / f"{name}.log"
        if log.stat().st_size > LARGEST_LOG_BYTES:
            os.truncate(log, 0)


def _is_of(port: str, alive: Mapping[str, ComponentProcess]) -> bool:
    return port in alive or port.removesuffix("-peer") in alive


def _free_port(taken: Collection[int]) -> int:
    while True:
        port = secrets.choice(_PORT_RANGE)
        if port in taken:
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((ADDRESS, port))
            except OSError:
                continue
        return port


_SLOTS = 2
_slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


def start_slots() -> asyncio.Semaphore:
    """Slots for starts of control planes in this process: more at once are all slower."""
    loop = asyncio.get_running_loop()
    for each in [each for each in _slots if each.is_closed()]:
        del _slots[each]
    return _slots.setdefault(loop, asyncio.Semaphore(_SLOTS))
