"""Backup buckets as directories, made and removed by the owner of the seed alone."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from gardenbus.agent.files import make_directory, path_inside, remove_if_empty


class BucketDirectory:
    """Buckets below a directory. `owned` is held for each change, and raises StaleFencingToken."""

    def __init__(self, directory: Path, owned: Callable[[], AbstractContextManager[None]]) -> None:
        self._directory = directory
        self._owned = owned

    def make(self, name: str) -> Path:
        """Make a bucket; returns its directory. Raises StaleFencingToken."""
        bucket = path_inside(self._directory, name)
        with self._owned():
            make_directory(bucket)
        return bucket

    def remove(self, name: str) -> None:
        """Remove a bucket with its content. Raises StaleFencingToken."""
        bucket = path_inside(self._directory, name)
        with self._owned():
            shutil.rmtree(bucket, ignore_errors=True)
            remove_if_empty(self._directory)
