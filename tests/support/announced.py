"""A landscape that is nothing but a NATS server with announcements, and a dashboard that reads them."""

import asyncio
import contextlib
import threading
from collections.abc import Generator, Sequence
from pathlib import Path

from gardenbus.common.adapters.nats.jetstream import connect
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.ports.bus import Message
from tests.support.dashboard_process import running_dashboard
from tests.support.servers import start_nats


def announcement(document: Document, version: int = 1) -> Message:
    """The announcement of an object."""
    metadata = document["metadata"]
    key = ObjectKey(document["kind"].lower(), metadata.get("namespace") or "", metadata["name"])
    headers = {Header.VERSION: str(version), Header.UID: "u", Header.VERB: "modified"}
    return Message(Subjects().changed(key), encode(document), headers)


@contextlib.contextmanager
def announced_landscape(
    directory: Path, messages: Sequence[Message], *, lacks: str = "", stalled: str = ""
) -> Generator[str]:
    """The URL of a dashboard on a server that holds the messages, in order; without a stream that it `lacks`.

    `stalled` is a queue whose controller has run once, and is gone.
    """

    async def publish() -> None:
        async with connect(server.url, "landscape") as bus:
            await bus.ensure_streams()
            for message in messages:
                await bus.publish(message)
            if stalled:
                await bus.work_queue("QUEUES", stalled, Subjects().queue_of(stalled))
            if lacks:
                await bus.request(f"$JS.API.STREAM.DELETE.{lacks}", b"")

    server = start_nats(directory / "nats", sync_interval="10s")
    try:
        publishing = threading.Thread(target=lambda: asyncio.run(publish()))  # the browser's loop is the caller's
        publishing.start()
        publishing.join()
        with running_dashboard(server.url, directory / "dashboard.log") as url:
            yield url
    finally:
        server.stop()
