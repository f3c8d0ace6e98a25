"""The `gardenbus` command for tests that are about what it does, not about how an interpreter starts.

An interpreter that imports a command takes half a second of a processor, most of what the command costs. What
`gardenbus_program` names is used like the installed command (arguments, streams, signals, exit code), and has a process
forked that imported everything before; see `command_server`. Starts, imports, terminals and encodings are tested with
`INSTALLED`, which also starts landscapes.
"""

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

INSTALLED = Path(sys.executable).parent / "gardenbus"
"""The command as it is installed."""

_SERVER = Path(__file__).with_name("command_server.py")
_LAUNCHER = """#!{python} -IS
import _signal as signal, _socket as socket, marshal, os, sys, time
if sys.argv[1:2] in (["up"], ["bench"]):
    os.execv({installed!r}, [{installed!r}, *sys.argv[1:]])
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
for _ in range(6000):
    try:
        connection.connect({path!r})
        break
    except (FileNotFoundError, ConnectionRefusedError):
        time.sleep(0.02)
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
body = marshal.dumps((sys.argv, dict(os.environ), os.getcwd()))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: connection.send(bytes([number])))
connection.sendmsg([body], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
code = marshal.loads(connection.recv(64))
if code < 0:
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@cache
def gardenbus_program() -> Path:
    """A program named `gardenbus` that runs its commands by a command server of this process, started at first use."""
    directory = Path(tempfile.mkdtemp(prefix="commands-"))
    path, program = directory / "socket", directory / "gardenbus"
    program.write_text(_LAUNCHER.format(python=sys.executable, installed=str(INSTALLED), path=str(path)))
    program.chmod(0o700)
    server = subprocess.Popen(
        [sys.executable, str(_SERVER), str(path), str(os.getpid())],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    server.returncode = 0  # it ends with this process, which shall not warn that nobody has waited for it
    return program
