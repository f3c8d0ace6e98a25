"""An S3 server for tests: moto's, as a process of its own."""

import contextlib
import http.client
import sys
from pathlib import Path

from tests.support.eventually import HANG_SECONDS
from tests.support.servers import Server, free_port

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1"}
"""Environment of whoever talks to it."""


def start_s3(directory: Path) -> Server:
    """An S3 server without buckets; it forgets everything with its end."""
    port = free_port()
    directory.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = Server(f"http://127.0.0.1:{port}", port, directory, command, _is_ready)
    server.start()
    return server


def make_bucket(server: Server, name: str) -> str:
    """Make a bucket; returns its address."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG_SECONDS)
    with contextlib.closing(connection):
        authorization = "AWS4-HMAC-SHA256 Credential=test/x/us-east-1/s3"
        connection.request("PUT", f"/{name}", headers={"Authorization": authorization})
        response = connection.getresponse()
        assert response.status == http.client.OK, response.read()
    return f"s3://{name}?endpoint={server.url}&region=eu-west-1"


def _is_ready(port: int) -> bool:
    with contextlib.suppress(OSError):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        with contextlib.closing(connection):
            connection.request("GET", "/moto-api/data.json")
            return connection.getresponse().status == http.client.OK
    return False
