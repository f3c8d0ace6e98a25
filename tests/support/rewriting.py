"""Rewriting of the assertions of all test modules, done once before several workers would each do it.

pytest compiles a test module with its assertions rewritten, and caches the result beside it. In a fresh
checkout all workers find nothing at the same moment: each compiles hundreds of modules, for most of a minute.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

MANY = 100
"""Modules without a cached result from which on it is worth a process a core."""


def is_rewritten(module: Path) -> bool:
    """Whether a newer result than the module is cached."""
    changed = module.stat().st_mtime
    cached = (module.parent / "__pycache__").glob(f"{module.stem}.*-pytest-*.pyc")
    return any(each.stat().st_mtime >= changed for each in cached)


def rewrite_once(folders: Iterable[Path]) -> None:
    """Collect the modules below some folders in a process a core, where most of them were never rewritten."""
    if sys.dont_write_bytecode:
        return
    modules = [each for folder in folders for each in sorted(folder.rglob("test_*.py")) if not is_rewritten(each)]
    if len(modules) < MANY:
        return
    count = os.cpu_count() or 1
    collect = (sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider")
    processes = [
        subprocess.Popen(
            [*collect, *map(str, modules[number::count])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for number in range(count)
    ]
    for process in processes:
        process.wait()
