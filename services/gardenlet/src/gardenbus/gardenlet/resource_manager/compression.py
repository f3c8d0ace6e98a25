"""Brotli, by which Gardener and its extensions compress manifests in Secrets."""

from importlib import import_module
from typing import Any

MOST_BYTES = 64 << 20
"""Bytes of a decompressed value: a Secret's mebibyte could hold gigabytes of the same."""


def decompress(value: bytes) -> bytes:
    """Decompress a value. Raises ValueError for one that Brotli has not made, that is cut off, or too large.

    The module is loaded here: most seeds have no ManagedResources with such a key.
    """
    try:
        brotli: Any = import_module("brotli")
    except ModuleNotFoundError as error:
        raise ValueError("the Python module brotli is not installed") from error
    decompressor: Any = brotli.Decompressor()
    try:
        content = bytes(decompressor.process(value, output_buffer_limit=MOST_BYTES))
    except brotli.error as error:
        raise ValueError(f"brotli: {error}") from error
    if len(content) >= MOST_BYTES:
        raise ValueError(f"brotli: more than {MOST_BYTES >> 20} MiB")
    if not decompressor.is_finished():
        raise ValueError("brotli: the value is cut off")
    return content
