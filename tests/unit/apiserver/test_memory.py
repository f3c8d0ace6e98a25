"""Memory of large messages goes back to the machine."""

import subprocess
import sys

import pytest

PROGRAM = """
from gardenbus.apiserver.memory import return_large_blocks
from tests.fuzz.findings import MEGABYTE, resident_bytes

if not return_large_blocks():
    raise SystemExit(3)
bytes(8 * MEGABYTE)
before = resident_bytes()
blocks = [bytearray(MEGABYTE // 4) for _ in range(200)]
kept = blocks[-1:]
most = resident_bytes()
del blocks
print((most - before) // MEGABYTE, (resident_bytes() - before) // MEGABYTE)
"""


def test_what_large_messages_took_is_returned_though_the_last_of_them_is_kept() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    if ended.returncode == 3:
        pytest.skip("this C library has no mallopt")
    assert ended.returncode == 0, ended.stderr
    most, after = map(int, ended.stdout.split())
    assert most >= 45
    assert after <= 2
