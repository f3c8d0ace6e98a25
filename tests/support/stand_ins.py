"""Servers of examples/exec."""

from pathlib import Path

STAND_IN = Path(__file__).parents[2] / "examples" / "exec" / "stand_in.py"


def servers_below(directory: Path) -> list[int]:
    """Process ids of the servers of shoots below a directory."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"serve" in arguments and any(each.startswith(f"{directory}/".encode()) for each in arguments):
            found.append(int(process.name))
    return found
