"""File systems of our own, to be filled up: in a namespace that ends with its last process. Linux, as root."""

import ctypes
import sys
from pathlib import Path

SIZE = "256m"
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x20000, 0x4000, 1 << 18


def enter_own_namespace() -> bool:
    """Have only this process and its children see what it mounts from now on; False where that is not allowed."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare") or libc.unshare(_CLONE_NEWNS) != 0:
        return False
    global _is_entered  # noqa: PLW0603 - a fact of this process
    _is_entered = libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None) == 0
    return _is_entered


_is_entered = False


def mount_small(directory: Path) -> bool:
    """Mount a file system of SIZE on a directory; False where that is not allowed."""
    if not _is_entered:
        return False
    directory.mkdir(parents=True, exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.mount(b"chaos", str(directory).encode(), b"tmpfs", 0, f"size={SIZE}".encode()) == 0
