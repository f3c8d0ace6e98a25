"""What tests start ends with them, also when they are killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.eventually import eventually

STARTS_CHILDREN = """
import json, signal, subprocess, sys
from tests.support.orphans import end_children_with_this_process
end_children_with_this_process()
sleep = "import time; time.sleep(600)"
start = f"subprocess.Popen([sys.executable, '-c', {sleep!r}], start_new_session=True, stdout=subprocess.DEVNULL)"
parent = f"import subprocess, sys; print({start}.pid)"
child = subprocess.Popen([sys.executable, "-c", sleep], start_new_session=True)
stopped = subprocess.Popen([sys.executable, "-c", sleep])
stopped.send_signal(signal.SIGSTOP)
grandchild = int(subprocess.run([sys.executable, "-c", parent], stdout=subprocess.PIPE, check=True).stdout)
print(json.dumps([child.pid, stopped.pid, grandchild]), flush=True)
sys.stdin.read()
"""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_processes_end_with_the_process_of_the_tests(number: signal.Signals, pytestconfig: pytest.Config) -> None:
    tests = subprocess.Popen(
        [sys.executable, "-c", STARTS_CHILDREN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=pytestconfig.rootpath,
    )
    assert tests.stdout is not None
    started: list[int] = json.loads(tests.stdout.readline())
    assert all(map(is_running, started))
    tests.send_signal(number)
    tests.wait()
    tests.communicate()

    async def gone() -> None:
        assert [pid for pid in started if is_running(pid)] == []

    await eventually(gone)
    assert is_running(os.getpid())
