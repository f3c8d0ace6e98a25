"""Files beside the project that some tests compare with."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("GARDENBUS_SHARED", Path(__file__).resolve().parents[3] / "shared"))


def required_shared(name: str) -> Path:
    """One of them; skips the test without it, and fails it where GARDENBUS_SHARED promises it."""
    path = SHARED / name
    if not path.exists() and "GARDENBUS_SHARED" in os.environ:
        pytest.fail(f"{path} not found, where GARDENBUS_SHARED says that it is")
    if not path.exists():
        pytest.skip(f"{path} not found; GARDENBUS_SHARED may say where it is")
    return path
