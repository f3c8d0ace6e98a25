"""Local deployments of gardenlets into shoots, one file a ManagedSeed, and their client certificates.

    <directory>/gardenlets/<namespace>/<shoot>.json      in the directory of the seed that runs the shoot
    <directory>/client-certificate                       in the directory of the new seed

The parent gardenlet writes the former atomically, as the owner of its directory (see local_files). Any host of
gardenlets on the same state directory reads and runs them.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog

from gardenbus.agent.files import make_directory, path_inside, remove_file, remove_if_empty, replace_file, write_draft
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.domain.deployments import GardenletDeployment, renewal_is_due
from gardenbus.gardenlet.domain.shoot_record import ShootName

_log = structlog.stdlib.get_logger()
_decode = msgspec.json.Decoder(GardenletDeployment).decode
_encode = msgspec.json.Encoder().encode


class _CachedFile(NamedTuple):
    """A parsed file; `stamp` detects changes."""

    stamp: tuple[int, int, int]
    deployed: GardenletDeployment | None


class DeploymentStore:
    """Deployments in the shoots of one seed. Reading needs no ownership."""

    def __init__(self, files: LocalFiles) -> None:
        self._files = files
        self._directory = files.directory / "gardenlets"
        self._cached: dict[Path, _CachedFile] = {}

    def all(self) -> list[GardenletDeployment]:
        """All deployments, sorted by namespace and shoot, without unreadable files."""
        files = sorted(self._directory.glob("*/*.json")) if self._directory.is_dir() else []
        found = [self._read(file) for file in files if not file.name.startswith(".")]
        for gone in self._cached.keys() - set(files):
            del self._cached[gone]
        return [deployed for deployed in found if deployed is not None]

    def load(self, shoot: ShootName) -> GardenletDeployment | None:
        """The deployment in a shoot."""
        return self._read(self._file(shoot))

    def of(self, namespace: str, managed_seed: str) -> GardenletDeployment | None:
        """The deployment for a ManagedSeed, in any shoot."""
        return next(
            (each for each in self.all() if (each.namespace, each.managed_seed) == (namespace, managed_seed)), None
        )

    def save(self, deployed: GardenletDeployment) -> None:
        """Write a deployment. Raises StaleFencingToken."""
        file = self._file((deployed.namespace, deployed.shoot))
        with self._files.owned():
            make_directory(file.parent)
            self._files.commit(write_draft(file, _encode(deployed)), file)

    def remove(self, shoot: ShootName) -> None:
        """Remove the deployment in a shoot. Raises StaleFencingToken."""
        file = self._file(shoot)
        with self._files.owned():
            remove_file(file)
            remove_if_empty(self._directory)

    def _read(self, file: Path) -> GardenletDeployment | None:
        try:
            status = file.stat()
            stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
            cached = self._cached.get(file)
            if cached is None or cached.stamp != stamp:
                cached = self._cached[file] = _CachedFile(stamp, _decoded(file))
        except FileNotFoundError:
            self._cached.pop(file, None)
            return None
        return cached.deployed

    def _file(self, shoot: ShootName) -> Path:
        namespace, name = shoot
        return path_inside(self._directory, namespace, f"{name}.json")


class ClientCertificate:
    """Client certificate of one gardenlet; without a certificate authority that is its time of issue.

    It is issued with the deployment (`bootstrapped_at`) and renewed by the gardenlet itself, which keeps the time in
    `directory`; the later one counts.
    """

    def __init__(self, directory: Path, *, bootstrapped_at: datetime, validity: timedelta) -> None:
        self._file = directory / "client-certificate"
        self._validity = validity
        self._issued_at = max(bootstrapped_at, self._renewed_at() or bootstrapped_at)

    @property
    def expires_at(self) -> datetime:
        """Time of expiry."""
        return self._issued_at + self._validity

    def has_expired(self, now: datetime) -> bool:
        """True once it has expired."""
        return now >= self.expires_at

    def renew_when_due(self, now: datetime) -> bool:
        """Renew it once most of its validity is over and it has not expired; returns whether it was renewed."""
        if not renewal_is_due(self._issued_at, self._validity, now):
            return False
        replace_file(self._file, now.astimezone(UTC).isoformat().encode())
        self._issued_at = now
        return True

    def _renewed_at(self) -> datetime | None:
        try:
            return datetime.fromisoformat(self._file.read_text().strip())
        except (FileNotFoundError, ValueError):
            return None


def _decoded(file: Path) -> GardenletDeployment | None:
    try:
        return _decode(file.read_bytes())
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        _log.warning("deployment.unreadable", file=str(file), reason=str(error))
        return None
