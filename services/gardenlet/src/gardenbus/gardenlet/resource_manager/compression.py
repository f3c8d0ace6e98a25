"""Brotli, by which Gardener and its extensions compress manifests in Secrets."""

from importlib import import_module
from typing import Any


def decompress(value: bytes) -> bytes:
    """Decompress a value. Raises ValueError for one that Brotli has not made.

    The module is loaded here: most seeds have no ManagedResources with such a key.
    """
    try:
        brotli: Any = import_module("brotli")
    except ModuleNotFoundError as error:
        raise ValueError("the Python module brotli is not installed") from error
    try:
        return bytes(brotli.decompress(value))
    except brotli.error as error:
        raise ValueError(f"brotli: {error}") from error
