"""Local deployments of gardenlets into shoots, one file a ManagedSeed.

    <directory>/gardenlets/<namespace>/<shoot>.json      in the directory of the seed that runs the shoot

The parent gardenlet writes them atomically, as the owner of its directory (see local_files). Any host of
gardenlets on the same state directory reads and runs them.
"""

from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog

from gardenbus.agent.files import make_directory, path_inside, remove_file, remove_if_empty, write_draft
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.domain.deployments import GardenletDeployment
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


def _decoded(file: Path) -> GardenletDeployment | None:
    try:
        return _decode(file.read_bytes())
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        _log.warning("deployment.unreadable", file=str(file), reason=str(error))
        return None
