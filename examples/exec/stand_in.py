#!/usr/bin/env python3
"""Command of the backend `exec` for all steps: a shoot is an HTTPS server with a certificate authority of its own.

It stands in for an API server and is none: it serves `/healthz`, and the shoot's spec as `/shoot.json`. It needs Linux,
Python and openssl (3.0 or later). Each step may be cut anywhere, and is then called again.

    stand_in.py               carry out the step on standard input
    stand_in.py serve FOLDER  be the server of a shoot
"""

import fcntl
import functools
import http.server
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

OWNER_VARIABLE = "GARDENBUS_EXEC_SEED_DIRECTORY"
"""Whatever has this variable is ended when another gardenlet acquires the seed."""
DONE, FAILED, AGAIN_LATER = 0, 1, 75
AUTHORITY = "basicConstraints = critical,CA:true\nkeyUsage = critical,keyCertSign\nsubjectKeyIdentifier = hash"
SERVER = "basicConstraints = critical,CA:false\nsubjectAltName = IP:127.0.0.1"
Document = dict[str, Any]


def end(code: int, response: Document) -> None:
    """Respond, and end."""
    json.dump(response, sys.stdout)
    sys.exit(code)


def write(file: Path, text: str) -> None:
    """Write a file as a whole: whoever reads it meets the old one or the new one."""
    new = file.with_name(f"{file.name}.new")
    new.touch(mode=0o600)
    new.write_text(text)
    new.replace(file)


def certificate(folder: Path, name: str, subject: str, extensions: str, *more: str) -> None:
    """Make a key and a certificate; both are there afterwards, or none."""
    wanted = f"[req]\ndistinguished_name = dn\nx509_extensions = e\n[dn]\n[e]\n{extensions}\n"
    key, crt = folder / f"{name}.key", folder / f"{name}.crt"
    made = ("-keyout", f"{key}.made", "-out", f"{crt}.made")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl = ("openssl", "req", "-x509", *curve, "-days", "3650", "-subj", f"/CN={subject}", "-config", "/dev/stdin")
    subprocess.run([*openssl, *made, *more], input=wanted, text=True, check=True, stdout=sys.stderr)  # noqa: S603  our own words
    Path(f"{key}.made").replace(key)
    Path(f"{crt}.made").replace(crt)


def make_secrets(folder: Path, name: str, kept: dict[str, str]) -> dict[str, str]:
    """The shoot's authority, made once: it moves with the shoot. The server's certificate is made anew on each seed."""
    files = ("ca.key", "ca.crt")
    if kept:
        for file in files:
            write(folder / file, kept[file])
    else:
        certificate(folder, "ca", name, AUTHORITY)
    if not (folder / "server.crt").exists():
        signed = ("-CA", str(folder / "ca.crt"), "-CAkey", str(folder / "ca.key"))
        certificate(folder, "server", "127.0.0.1", SERVER, *signed)
    return {file: (folder / file).read_text() for file in files}


def servers(folder: Path) -> list[int]:
    """Processes that serve the shoot, found by their arguments: no file has to be believed."""
    arguments = f"\0serve\0{folder}\0".encode()
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().endswith(arguments):
                found.append(int(process.name))
        except OSError:
            continue  # it has just ended
    return found


def start_server(folder: Path) -> None:
    """Have a server run that outlives this command: a session of its own, none of our pipes, and not the variable."""
    if not servers(folder):
        environment = {name: value for name, value in os.environ.items() if name != OWNER_VARIABLE}
        with (folder / "log").open("ab") as log:
            subprocess.Popen(  # noqa: S603  this file
                [sys.executable, str(Path(__file__).resolve()), "serve", str(folder)],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip


def stop_server(folder: Path) -> None:
    """End the server; again later if it takes its time."""
    for _ in range(50):
        running = servers(folder)
        if not running:
            return
        for pid in running:
            os.kill(pid, signal.SIGTERM)
        time.sleep(0.1)
    end(AGAIN_LATER, {"message": "the server has not ended yet"})


def serve(folder: Path) -> None:
    """Serve until the folder is gone, on the port that it had before if that is free."""
    lock = (folder / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # one that was started twice ends here
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder / "www"))
    url = folder / "url"
    try:
        server = Server(("127.0.0.1", int(url.read_text().rpartition(":")[2])), handler)
    except (OSError, ValueError):
        server = Server(("127.0.0.1", 0), handler)
    server.folder = folder
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    write(url, f"https://127.0.0.1:{server.server_address[1]}")
    server.serve_forever()


class Server(http.server.ThreadingHTTPServer):
    """A server that ends with its folder, so that nothing is left where somebody has removed everything."""

    daemon_threads = True
    folder: Path

    def service_actions(self) -> None:
        """Called twice a second."""
        if not self.folder.exists():
            os._exit(0)


def take(spec: Document, folder: Path) -> None:
    """Have the shoot's folder, unless the shoot is none for us: no repetition helps that, and its code says so."""
    if spec.get("purpose") == "production":
        no = "a stand-in is no cluster: it accepts no shoots whose purpose is production"
        end(FAILED, {"message": no, "codes": ["ERR_CONFIGURATION_PROBLEM"]})
    if shutil.which("openssl") is None:
        end(FAILED, {"message": "openssl is not on PATH", "codes": ["ERR_RETRYABLE_CONFIGURATION_PROBLEM"]})
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "www").mkdir(exist_ok=True)


def roll_out(spec: Document, folder: Path) -> Document:
    """Have the spec served, or nothing run where the shoot shall sleep; returns what is kept."""
    write(folder / "www" / "shoot.json", json.dumps(spec, indent=2))
    write(folder / "www" / "healthz", "ok\n")
    if spec.get("hibernation", {}).get("enabled"):
        stop_server(folder)
        return {"hibernated": True}
    start_server(folder)
    return {}


def problem(folder: Path) -> str:
    """The problem of the server; "" when it responds with a certificate of the shoot's authority."""
    try:
        context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        with urllib.request.urlopen((folder / "url").read_text() + "/healthz", timeout=5, context=context) as response:  # noqa: S310
            response.read()
    except (OSError, ValueError) as error:
        return f"The server does not respond: {error}"
    return ""


def wait_for_server(folder: Path) -> None:
    """Wait for the server for a few seconds; again later if it takes longer."""
    deadline = time.monotonic() + 5
    while why := problem(folder):
        if time.monotonic() > deadline:
            end(AGAIN_LATER, {"message": why})
        time.sleep(0.1)


def carry_out(step: str, given: Document, name: str, folder: Path) -> Document:
    """Carry out a step; returns its response. Steps that are not named here have nothing to do."""
    spec, kept = given["spec"], given["kept"]
    match step:
        case "namespace":
            take(spec, folder)
        case "secrets":
            return {"kept": make_secrets(folder, name, kept.get(step, {}))}
        case "control-plane":
            return {"kept": roll_out(spec, folder)}
        case "wait-for-api-server":
            if not kept.get("control-plane", {}).get("hibernated"):
                wait_for_server(folder)
        case "health":
            return {"problems": {"APIServerAvailable": why} if (why := problem(folder)) else {}}
        case "delete-control-plane" | "stop-control-plane":
            stop_server(folder)
        case "delete-namespace" | "release-namespace" if folder.exists():
            shutil.rmtree(folder)
        case _:
            pass
    return {}


def main() -> None:
    """Read what is given, and carry it out."""
    if sys.argv[1:2] == ["serve"]:
        serve(Path(sys.argv[2]))
    given = json.load(sys.stdin)
    name = given["shoot"]["technicalID"]
    end(DONE, carry_out(given["step"], given, name, Path(given["seed"]["directory"], name)))


if __name__ == "__main__":
    main()
