"""What is left on this machine of control planes that are processes."""

import json
import signal
import socket
import time
from collections.abc import Iterable
from pathlib import Path

from gardenbus.gardenlet.backend.processes.child import running_below


def left_below(directory: Path) -> list[str]:
    """Programs that run there, and the directories of control planes and backups."""
    programs = [Path(each.arguments[0]).name for each in running_below(directory)]
    places = [*directory.glob("**/control-planes/*"), *directory.glob("**/.backups/*/*")]
    return sorted([*programs, *map(str, places)])


def ports_below(directory: Path) -> set[int]:
    """Ports that the control planes there keep."""
    states = [json.loads(file.read_text()) for file in directory.glob("**/cluster.json")]
    return {port for state in states for port in state["ports"].values()}


def listening(ports: Iterable[int]) -> set[int]:
    """Those of the ports on which somebody takes connections."""
    found: set[int] = set()
    for port in ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                found.add(port)
    return found


def end_all_below(directory: Path) -> None:
    """Kill whatever runs there."""
    for each in running_below(directory):
        each.child.signal(signal.SIGKILL)
        while each.child.is_alive:
            time.sleep(0.02)
