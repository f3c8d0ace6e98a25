"""What is left on this machine of control planes that are processes."""

import signal
import time
from pathlib import Path

from gardenbus.gardenlet.backend.processes.child import running_below


def left_below(directory: Path) -> list[str]:
    """Programs that run there, and the directories of control planes and backups."""
    programs = [Path(each.arguments[0]).name for each in running_below(directory)]
    places = [*directory.glob("**/control-planes/*"), *directory.glob("**/.backups/*/*")]
    return sorted([*programs, *map(str, places)])


def end_all_below(directory: Path) -> None:
    """Kill whatever runs there."""
    for each in running_below(directory):
        each.child.signal(signal.SIGKILL)
        while each.child.is_alive:
            time.sleep(0.02)
