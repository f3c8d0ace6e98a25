"""Values that Brotli has compressed are read, and no others."""

from importlib import import_module
from typing import Any

import pytest

from gardenbus.gardenlet.resource_manager.compression import MOST_BYTES, decompress

brotli: Any = import_module("brotli")


def test_a_compressed_value_is_decompressed() -> None:
    assert decompress(brotli.compress(b"kind: ConfigMap\n" * 1000)) == b"kind: ConfigMap\n" * 1000


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"kind: ConfigMap", "brotli"),
        (brotli.compress(b"abc" * 1000)[:-3], "cut off"),
        (brotli.compress(b"a" * (MOST_BYTES + 1), quality=1), "more than 64 MiB"),
    ],
)
def test_a_value_that_is_no_such_or_cut_off_or_too_large_is_rejected(value: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decompress(value)
