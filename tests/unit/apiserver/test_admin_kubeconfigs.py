"""A kubeconfig is asked of the gardenlet that runs the shoot, for a life within limits, by whoever may."""

from typing import Any

import msgspec
import pytest

from gardenbus.apiserver.requests.admin_kubeconfigs import AdminKubeconfigs
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.api.responses import failure, success
from gardenbus.common.errors import BadRequest, Conflict, Forbidden, GardenbusError, NotFound, Unavailable
from gardenbus.common.ports.bus import Request
from tests.support.builders import a_shoot
from tests.support.calls import a_call
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

SUBJECTS = Subjects("garden")
APOLLO = ObjectKey("shoot", "garden-dev", "apollo")


class Gardenlet:
    """The gardenlet of seed aws, and what it was requested."""

    def __init__(self, response: bytes) -> None:
        self.response = response
        self.bodies: list[Any] = []

    async def __call__(self, request: Request) -> bytes:
        self.bodies.append(msgspec.json.decode(request.body))
        return self.response


async def handler(gardenlet: Gardenlet | None = None, *, seed: str = "aws") -> AdminKubeconfigs:
    clock = FakeClock()
    store, bus = MemoryStore(clock), MemoryBus(clock)
    await store.create(a_shoot(status={"seedName": seed} if seed else {}))
    if gardenlet is not None:
        await bus.serve("gardenlet-aws", "1.0.0", {SUBJECTS.admin_kubeconfigs_of("aws"): gardenlet})
    return AdminKubeconfigs(store, bus, SUBJECTS)


async def query(
    requested: AdminKubeconfigs, body: bytes = b"", tail: str = "garden-dev.apollo", *, is_operator: bool = True
) -> Any:
    return await requested.on_adminkubeconfig(a_call("adminkubeconfig", tail, body, "ann", is_operator=is_operator))


async def test_the_gardenlets_response_is_passed_on() -> None:
    gardenlet = Gardenlet(success({"kubeconfig": "…"}))
    requested = await handler(gardenlet)
    assert await query(requested) == {"kubeconfig": "…"}
    await query(requested, b'{"expirationSeconds": 1000000}')
    assert gardenlet.bodies == [
        {"expirationSeconds": 3600, "user": "ann"},
        {"expirationSeconds": 86_400, "user": "ann"},
    ]


@pytest.mark.parametrize(
    ("body", "tail", "seed", "is_operator", "error"),
    [
        (b'{"expirationSeconds": 599}', "garden-dev.apollo", "aws", True, BadRequest),
        (b"[]", "garden-dev.apollo", "aws", True, BadRequest),
        (b"", "apollo", "aws", True, BadRequest),
        (b"", "garden-dev.zeus", "aws", True, NotFound),
        (b"", "garden-dev.apollo", "", True, Conflict),
        (b"", "garden-dev.apollo", "elsewhere", True, Unavailable),
        (b"", "garden-dev.apollo", "aws", False, Forbidden),
    ],
)
async def test_what_cannot_be_is_refused(
    body: bytes, tail: str, seed: str, is_operator: bool, error: type[GardenbusError]
) -> None:
    gardenlet = Gardenlet(success({}))
    with pytest.raises(error):
        await query(await handler(gardenlet, seed=seed), body, tail, is_operator=is_operator)
    assert gardenlet.bodies == []


async def test_what_the_gardenlet_refuses_is_refused_in_its_words() -> None:
    asleep = await handler(Gardenlet(failure(Conflict("it is hibernated"))))
    with pytest.raises(Conflict, match="it is hibernated"):
        await query(asleep)
