"""Files of a process that dies while it writes."""

from pathlib import Path

from gardenbus.gardenlet.backend.local_files import LocalFiles


class Killed(BaseException):
    """The process is no more."""


class CrashingFiles(LocalFiles):
    """Files of a process that dies at its n-th write, before or after it has happened (None: never)."""

    def __init__(self, directory: Path, dies_at: int | None = None, *, after_the_write: bool = False) -> None:
        super().__init__(directory)
        self.writes_left = dies_at
        self.after_the_write = after_the_write

    def commit(self, draft: Path, file: Path) -> None:
        if self.writes_left == 0 and not self.after_the_write:
            raise Killed
        super().commit(draft, file)
        if self.writes_left == 0:
            raise Killed
        if self.writes_left is not None:
            self.writes_left -= 1
