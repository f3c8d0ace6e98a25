"""Editor of the operator, for `edit` and `rejected replay`."""

import os
import shlex
import subprocess
from pathlib import Path

from gardenbus.common.errors import BadRequest


def open_editor(file: Path, chosen: str | None = None) -> None:
    """Edit a file with `chosen`, $VISUAL, $EDITOR or vi, and wait for the end. Raises BadRequest when that fails."""
    editor = chosen or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603 - what the operator chose
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise BadRequest(f"the editor ({editor}) failed, nothing is sent: {error}") from error
