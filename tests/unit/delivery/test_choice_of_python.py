"""`make` takes the better Python of those that are there."""

import os
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]


def a_python(directory: Path, name: str, response: str) -> Path:
    file = directory / name
    file.write_text(f"#!/bin/sh\necho '{response}'\n" if response else "#!/bin/sh\nexit 1\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ({"python3": "True False", "python3.13": "True True", "python3.12": "True True"}, "python3.13"),
        ({"python3": "True True", "python3.13": "True True"}, "python3"),
        ({"python3": "False True", "python3.12": "True False"}, "python3.12"),
        ({"python3": "True False", "python3.12": "True False"}, "python3"),
        ({"python3": "", "python3.11": "True False"}, "python3.11"),
    ],
)
def test_the_first_that_is_optimized_is_taken_and_else_the_first_that_is_new_enough(
    tmp_path: Path, there: dict[str, str], chosen: str
):
    for name, response in there.items():
        a_python(tmp_path, name, response)
    script = (TOP / "deploy/choose-python.sh").read_text().replace("/usr/bin/python3", "")
    shell = [str(Path("/bin/sh")), "-c", script]

    done = subprocess.run(shell, capture_output=True, text=True, env={**os.environ, "PATH": str(tmp_path)}, check=True)

    assert done.stdout == f"{tmp_path / chosen}\n"
