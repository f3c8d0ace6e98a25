"""The state directory of a landscape: what is where, landscape.json, and the lock against a second `up`.

All of it is for its owner alone: it holds what the landscape stores, and whoever writes there acts as its agents.
"""

import contextlib
import fcntl
import os
import shlex
import stat
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.credentials.owned_directories import ForeignPath, foreign_path

LandscapeState = Literal["starting", "ready", "stopping", "stopped"]

DEFAULT_DIRECTORY = Path(".gardenbus")
_DIRECTORY_MODE, _FILE_MODE = 0o700, 0o600
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class ServiceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One process as landscape.json has it; `pid` is None while it is down or is not ours."""

    name: str
    pid: int | None = None
    health_url: str | None = None
    url: str | msgspec.UnsetType = msgspec.UNSET
    """Address for people and their programs: of the dashboard's page, and of the Kubernetes API."""
    restarts: int = 0
    """Times that it ended by itself, and was started again."""
    note: str | msgspec.UnsetType = msgspec.UNSET
    """Its supervisor's observation: a server that cannot write, and why."""


class ServiceStatus(NamedTuple):
    """State of one process of a landscape, for tables and diagnostics."""

    name: str
    state: str
    pid: int | None
    restarts: int = 0
    trouble: str = ""


def ready_url(name: str, health_url: str) -> str:
    """Address of a process' readiness endpoint."""
    return health_url + ("/healthz" if name == "nats" or name.startswith("nats-") else "/readyz")


class LandscapeFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of landscape.json: addresses and processes of a landscape, and the `up` that runs it."""

    nats_url: str
    redis_url: str
    prefix: str = "garden"
    services: tuple[ServiceEntry, ...] = ()
    state: LandscapeState = "starting"
    supervisor_pid: int | None = None
    ports: dict[str, int] = {}
    """Last ports: nats, nats-monitor, redis (unless it has a socket), dashboard, kubeapi; of a cluster nats-1, …"""
    nats_user: str = ""
    """The operator's name for NATS; "" where everybody is let in."""
    nats_password: str = ""
    ca: str = ""
    """File of the authorities that NATS' certificate is of; "" where connections use no TLS."""


class LandscapeInUse(Exception):
    """Another `up` runs the landscape of this directory; `pid` is its process."""

    def __init__(self, directory: Path, pid: int | None) -> None:
        super().__init__(
            f"{directory} is in use by another `gardenbus up` (pid {pid}); "
            f"stop it: gardenbus down{directory_option(directory)}"
        )
        self.pid = pid


class DirectoryUnwritable(Exception):
    """Something below the state directory cannot be written."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"cannot write {path}: {error.strerror or error}")


class DirectoryForeign(DirectoryUnwritable):
    """The state directory, or something in it, is somebody else's, who could have planted it."""

    def __init__(self, foreign: ForeignPath) -> None:
        Exception.__init__(self, str(foreign))


class LandscapeDirectory:
    """Paths below the state directory D, and what is kept in them."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.landscape_file = self.path / "landscape.json"
        self.lock_file = self.path / "up.lock"
        self.logs = self.path / "logs"
        self.config = self.path / "config"
        self.health = self.path / "health"
        self.gardenlets = self.path / "gardenlets"
        self.members = self.path / "members"
        self.nats = self.path / "nats"
        self.redis = self.path / "redis"
        self.identity = self.path / "identity"
        self.dashboard_key = self.identity / "dashboard.key"
        self.redis_socket = self.redis / "redis.sock"
        self.folders = (
            *(self.logs, self.config, self.health, self.identity),
            *(self.gardenlets, self.members, self.nats, self.redis),
        )
        """All folders of a landscape."""

    def prepare(self) -> None:
        """Create what is missing, and tighten what an older version made. Raises DirectoryUnwritable."""
        self.check_owner()
        with writing(self.path):
            self.path.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
            for folder in self.folders:
                folder.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
                if folder.stat().st_mode & _OTHERS:
                    _tighten_tree(folder)
            for file in (self.landscape_file, self.lock_file):
                _tighten(file)
            if all(map(self.owns, self.path.iterdir())):
                with contextlib.suppress(PermissionError):  # the directory is another user's, what is in it is not
                    _tighten(self.path.resolve())

    def check_owner(self) -> None:
        """Raise DirectoryForeign when somebody else could have put something there; nothing is opened or made."""
        with writing(self.path):
            found = foreign_path(self.path, (self.landscape_file, self.lock_file, *self.folders))
        if found is not None:
            raise DirectoryForeign(found)

    def owns(self, entry: Path) -> bool:
        """True for an entry of the directory that is a landscape's."""
        own = {self.landscape_file, self.lock_file, *self.folders}
        return entry in own or entry.name.startswith(f".{self.landscape_file.name}.")

    def read(self) -> LandscapeFile | None:
        """Read landscape.json; None when there is none that can be read."""
        try:
            return decode_json(self.landscape_file.read_bytes(), LandscapeFile)
        except (OSError, msgspec.MsgspecError):
            return None

    def write(self, landscape: LandscapeFile) -> None:
        """Replace landscape.json, whole or not at all. Raises DirectoryUnwritable."""
        write_whole(self.landscape_file, msgspec.json.format(msgspec.json.encode(landscape), indent=2))

    def lock(self) -> int:
        """Take the lock, for as long as this process lives. Raises LandscapeInUse, DirectoryUnwritable."""
        self.check_owner()
        with writing(self.path):
            self.path.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
            descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _FILE_MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise LandscapeInUse(self.path, self._pid_in_lock()) from error
        try:
            with writing(self.path):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"{os.getpid()}\n".encode())
        except DirectoryUnwritable:
            os.close(descriptor)
            raise
        return descriptor

    def supervisor(self) -> int | None:
        """The process that holds the lock now, or None."""
        try:
            descriptor = os.open(self.lock_file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return self._pid_in_lock()
        finally:
            os.close(descriptor)
        return None

    def _pid_in_lock(self) -> int | None:
        try:
            return int(self.lock_file.read_text().strip())
        except (OSError, ValueError):
            return None


@contextlib.contextmanager
def writing(path: Path) -> Generator[None]:
    """Raise DirectoryUnwritable for an OSError inside."""
    try:
        yield
    except OSError as error:
        raise DirectoryUnwritable(path, error) from error


def socket_url(socket: Path) -> str:
    """URL of a Redis that listens on a Unix socket."""
    return f"unix://{quote(str(socket))}"


def open_for_owner(file: Path, flags: int) -> int:
    """Open a file for writing, made such that only its owner reads it; returns its descriptor."""
    return os.open(file, flags | os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)


def default_directory(environ: Mapping[str, str] | None = None) -> Path:
    """The state directory of commands that name none: GARDENBUS_DIR, else ./.gardenbus."""
    given = (os.environ if environ is None else environ).get("GARDENBUS_DIR")
    return Path(given).expanduser() if given else DEFAULT_DIRECTORY


def directory_option(path: Path) -> str:
    """Option that makes a suggested `gardenbus` command about this directory: "" for the default one."""
    return "" if path.absolute() == default_directory().absolute() else f" --dir {shlex.quote(str(path))}"


def write_whole(file: Path, content: bytes) -> None:
    """Write a file for its owner: readers see the old content or the new, never a part. Raises DirectoryUnwritable."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    with writing(file):
        try:
            file.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            with os.fdopen(open_for_owner(draft, os.O_EXCL), "wb") as opened:
                opened.write(content)
            draft.replace(file)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise


def _tighten_tree(folder: Path) -> None:
    """Tighten a folder with all below it, itself last: what breaks off is done again."""
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            _tighten(Path(parent, name))
    _tighten(folder.resolve())


def _tighten(path: Path) -> None:
    """Take away what group and others may do; links are left, and so is what is gone."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & _OTHERS:
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
