"""The program of tests runs commands as long as the tests' process does."""

import subprocess
import threading
import time
from pathlib import Path

from tests.support.commands import gardenbus_program


def test_the_program_outlives_the_thread_that_made_it() -> None:
    made: list[Path] = []
    thread = threading.Thread(target=lambda: made.append(gardenbus_program()))
    thread.start()
    thread.join()
    time.sleep(0.5)  # Linux tells the server of the end of the thread at once
    assert subprocess.run([str(made[0]), "--version"], capture_output=True, check=False).returncode == 0
