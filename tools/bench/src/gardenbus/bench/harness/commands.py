"""Commands that a measurement runs beside itself."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from gardenbus.bench.harness.retries import BenchFailed

_SHOWN = 2000
"""Characters of a failed command's output, from its end."""


async def run_command(
    command: Sequence[str], *, limit: float, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> None:
    """Run a command to its end. Raises BenchFailed when it fails, or takes more than `limit` seconds."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(limit):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise BenchFailed(f"{' '.join(command)} did not end within {limit:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        printed = output.decode(errors="replace").strip()[-_SHOWN:]
        raise BenchFailed(f"{' '.join(command)} exited with {process.returncode}: {printed}")
