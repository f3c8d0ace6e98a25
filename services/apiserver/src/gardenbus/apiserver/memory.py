"""Memory of a process: what a large message took goes back to the machine when the message is gone.

glibc keeps each freed block for the next of its size, and raises the size from which it does not whenever a larger one
is freed: after some messages of a mebibyte a process stays twice as large. With the sizes fixed, the apiserver that 50
connections attacked for a minute kept 22 MB in the place of 66 (`make fuzz ARGS=roles`). The apiserver alone does that,
which gets what strangers send: a service that works on bundles of some hundred KiB all the time takes a third more CPU
to map them again and again.
"""

import ctypes

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
RETURNED_BYTES = 128 * 1024
"""Blocks from which each is mapped by itself, and free memory at the heap's end that is returned: glibc's own start."""


def return_large_blocks() -> bool:
    """Fix the sizes from which freed memory is returned to the machine; False where the C library cannot."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # musl, macOS: they return memory by rules of their own
        return False
    return all(mallopt(option, RETURNED_BYTES) == 1 for option in (_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD))
