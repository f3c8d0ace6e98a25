"""The containers' health check: requests /readyz, prints the response and ends with 0 when it is 200.

Imports as little as possible, because it runs every few seconds in each container.
"""

import os
import socket
import sys

port = int(os.environ.get("GARDENBUS_HEALTH_PORT", "8080"))
try:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")
        response = b""
        while part := connection.recv(65536):
            response += part
except OSError as error:
    sys.exit(f"no response on port {port}: {error}")
head, _, body = response.partition(b"\r\n\r\n")
sys.stdout.write(body.decode(errors="replace"))
sys.exit(0 if head.split(b" ", 2)[1:2] == [b"200"] else 1)
