"""The local backend's gardenlets in shoots: what is deployed into each shoot for its ManagedSeed, as one file.

    <directory>/gardenlets/<namespace>/<shoot>.json      below the directory of the seed that runs the shoot
    <directory>/client-certificate                       below the directory of the new seed itself

Who deploys writes the former, whole or not at all, and only as the owner of its directory (see local_files). Whoever
hosts gardenlets on the same state directory reads them, and runs what they say.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog

from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.backend.port import ShootName
from gardenbus.gardenlet.decide.child import Deployed, renewal_is_due

_log = structlog.stdlib.get_logger()
_decode = msgspec.json.Decoder(Deployed).decode
_encode = msgspec.json.Encoder().encode


class _Read(NamedTuple):
    """A file as it was read; `stamp` tells whether it is another one by now."""

    stamp: tuple[int, int, int]
    deployed: Deployed | None


class Children:
    """What is deployed into the shoots of one seed. Reading needs no ownership."""

    def __init__(self, files: LocalFiles) -> None:
        self._files = files
        self._directory = files.directory / "gardenlets"
        self._seen: dict[Path, _Read] = {}

    def all(self) -> list[Deployed]:
        """Everything that is deployed, by namespace and shoot; a file that cannot be read counts as none."""
        files = sorted(self._directory.glob("*/*.json")) if self._directory.is_dir() else []
        found = [self._read(file) for file in files if not file.name.startswith(".")]
        for gone in self._seen.keys() - set(files):
            del self._seen[gone]
        return [deployed for deployed in found if deployed is not None]

    def load(self, shoot: ShootName) -> Deployed | None:
        """What is deployed into a shoot."""
        return self._read(self._file(shoot))

    def of(self, namespace: str, managed_seed: str) -> Deployed | None:
        """What is deployed for a ManagedSeed, in whichever shoot."""
        return next(
            (each for each in self.all() if (each.namespace, each.managed_seed) == (namespace, managed_seed)), None
        )

    def save(self, deployed: Deployed) -> None:
        """Put it into its shoot. Raises FencedOff."""
        file = self._file((deployed.namespace, deployed.shoot))
        with self._files.owned():
            file.parent.mkdir(parents=True, exist_ok=True)
            draft = file.with_name(f".{file.name}.draft")
            draft.write_bytes(_encode(deployed))
            self._files.commit(draft, file)

    def remove(self, shoot: ShootName) -> None:
        """Take everything out of a shoot. Raises FencedOff."""
        file = self._file(shoot)
        with self._files.owned():
            file.unlink(missing_ok=True)
            file.with_name(f".{file.name}.draft").unlink(missing_ok=True)
            for directory in (file.parent, self._directory):
                if directory.is_dir() and not any(directory.iterdir()):
                    directory.rmdir()

    def _read(self, file: Path) -> Deployed | None:
        try:
            status = file.stat()
            stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
            seen = self._seen.get(file)
            if seen is None or seen.stamp != stamp:
                seen = self._seen[file] = _Read(stamp, _decoded(file))
        except FileNotFoundError:
            self._seen.pop(file, None)
            return None
        return seen.deployed

    def _file(self, shoot: ShootName) -> Path:
        namespace, name = shoot
        return self._directory / namespace / f"{name}.json"


class Certificate:
    """The client certificate of one gardenlet, as far as a machine without an authority has one: its time.

    It is issued with the deployment (`bootstrapped_at`) and renewed by the gardenlet itself, which keeps the time of
    that in `directory`; whichever was last counts.
    """

    def __init__(self, directory: Path, *, bootstrapped_at: datetime, validity: timedelta) -> None:
        self._file = directory / "client-certificate"
        self._validity = validity
        self._issued_at = max(bootstrapped_at, self._renewed_at() or bootstrapped_at)

    @property
    def expires_at(self) -> datetime:
        """When it ends."""
        return self._issued_at + self._validity

    def has_expired(self, now: datetime) -> bool:
        """Whether the bus would refuse it."""
        return now >= self.expires_at

    def renew_when_due(self, now: datetime) -> bool:
        """Renew it once most of its time has passed, while it is good; answers whether it was renewed."""
        if not renewal_is_due(self._issued_at, self._validity, now):
            return False
        draft = self._file.with_name(f".{self._file.name}.draft")
        draft.write_text(now.astimezone(UTC).isoformat())
        draft.replace(self._file)
        self._issued_at = now
        return True

    def _renewed_at(self) -> datetime | None:
        try:
            return datetime.fromisoformat(self._file.read_text().strip())
        except (FileNotFoundError, ValueError):
            return None


def _decoded(file: Path) -> Deployed | None:
    try:
        return _decode(file.read_bytes())
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        _log.warning("deployment.unreadable", file=str(file), reason=str(error))
        return None
