"""A reply subject makes nobody act in somebody else's name."""

from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.messages import publish_command
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Request
from tests.support.buses import on_jetstream
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import Server

LEASE = b'{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a"}}'


async def test_requests_are_answered_to_inboxes_only(shared_nats_server: Server) -> None:
    """An acknowledgement of the server, or a response, that lands on a request's subject is not one."""
    under_test = await on_jetstream(shared_nats_server.url)
    bus, subjects = under_test.bus, under_test.subjects
    received: list[Request] = []

    async def handle(request: Request) -> bytes:
        received.append(request)
        return b"{}"

    await bus.serve("apiserver", "1.0.0", {subjects.as_user("*", "api.>"): handle})
    stranger = Connection()
    await stranger.open(shared_nats_server.url, "stranger", on_reconnect=lambda: None)
    await stranger.send(
        [
            publish_command(
                subjects.lease("a"), LEASE, reply=subjects.as_user("root", "api.delete.configmap.garden.dear")
            ),
            publish_command(_get(subjects, "a"), b"", reply=subjects.as_user("root", "apply")),
            publish_command(_get(subjects, "b"), b""),
        ]
    )
    await stranger.request_raw(_get(subjects, "c"), b"", timeout_seconds=HANG_SECONDS)
    await stranger.close()
    assert [request.subject for request in received] == [_get(subjects, "c")]

    async def stored() -> None:
        assert (await bus.position(subjects.stream("LEASES"))).sequence == 1

    await eventually(stored)
    assert (await bus.position(subjects.stream("REQUESTS"))).sequence == 0
    await under_test.stack.aclose()


def _get(subjects: Subjects, name: str) -> str:
    return subjects.as_user("ann", f"api.get.shoot.dev.{name}")
