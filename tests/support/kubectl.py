"""kubectl on one cluster."""

import asyncio
from pathlib import Path
from typing import NamedTuple


class Kubectl(NamedTuple):
    """The program, and the kubeconfig of a cluster."""

    program: str
    kubeconfig: Path

    async def text(self, *arguments: str) -> str:
        """What it prints; fails with what it says to standard error."""
        process = await asyncio.create_subprocess_exec(
            self.program,
            *("--kubeconfig", str(self.kubeconfig), *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"HOME": str(self.kubeconfig.parent)},
        )
        output, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
        return output.decode()
