"""Output where the encoding of a stream has not all characters."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gardenbus.cli.output.plain_characters import print_plainly

GARDENBUS = Path(sys.executable).with_name("gardenbus")


@pytest.mark.parametrize(
    ("encoding", "printed"),
    [("ascii", b"9 more... -> ##. b\\xfccher"), ("latin-1", b"9 more... -> ##. b\xfccher"), ("cp437", None)],
)
def test_what_an_encoding_has_not_is_printed_in_its_plain_form(encoding: str, printed: bytes | None):
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding=encoding)

    print_plainly(stream)
    stream.write("9 more… → ██░ bücher")
    stream.flush()

    assert written.getvalue() == (printed or "9 more... -> ██░ bücher".encode("cp437"))


def test_help_is_printed_in_an_encoding_without_an_ellipsis():
    environ = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "200", "TERM": "dumb"}

    done = subprocess.run([GARDENBUS, "get", "--help"], capture_output=True, env=environ, check=True)
    rejected = subprocess.run(
        [GARDENBUS, "get", "x/", "--dir", "/nowhere"], capture_output=True, env=environ, check=False
    )

    assert b"KIND/NAME..." in done.stdout
    assert b"\\u2026" not in done.stdout + rejected.stderr
