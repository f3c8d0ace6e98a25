"""Accounts of the server, and what crosses between them.

JetStream and the services are in GARDEN. Everybody else is in OUT, whose subjects reach GARDEN through the imports here
and nothing else: a reply crosses back as `_R_.…` into OUT, so that no reply subject can name anything in GARDEN.

What an outsider sends as `garden.as.<user>.…` arrives in GARDEN as `garden.out.<user>.…`: the subject proves that its
sender is none of the services. The server also adds the requester (`Nats-Request-Info`) to what is imported with
`share`; but JetStream removes that from what it stores, and a header block that is cut short hides it, so that its
absence proves nothing.

A consumer is made by the apiserver (`own_consumers`), not by JetStream, whose permissions say nothing of where one
delivers to: what an outsider sends to create one arrives in GARDEN as `garden.consumer.…`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.api.identity.permissions import IMPORTED_JETSTREAM_API, JETSTREAM_API
from gardenbus.common.api.keys import Subjects

GARDEN = "GARDEN"
OUT = "OUT"
AUTH = "AUTH"
SYS = "SYS"


class Crossing(NamedTuple):
    """A family of subjects that outsiders may publish on (`inward`), or that services may call outsiders on."""

    subject: str
    """In the account of those who respond."""
    local: str = ""
    """In the account of the requesters; the same unless given."""
    is_stream: bool = False
    """Many responses may come to one request."""
    inward: bool = True


def crossings(subjects: Subjects) -> Sequence[Crossing]:
    """All that crosses between OUT and GARDEN."""
    bindings, leases, objects, queues = map(subjects.stream, ("BINDINGS", "LEASES", "OBJECTS", "QUEUES"))
    prefix = subjects.prefix
    api = (
        *((f"CONSUMER.DELETE.{stream}.*", False) for stream in (bindings, objects)),
        *((f"CONSUMER.INFO.{stream}.*", False) for stream in (bindings, objects, queues)),
        *((f"CONSUMER.MSG.NEXT.{stream}.*", True) for stream in (bindings, objects, queues)),
        (f"DIRECT.GET.{leases}.>", False),
    )
    return (
        Crossing(f"{prefix}.out.*.>", f"{prefix}.as.*.>"),
        Crossing(f"{prefix}.lease.*"),
        Crossing(f"{prefix}.report.>"),
        *(
            Crossing(subjects.consumer(f"{stream}.>"), f"{IMPORTED_JETSTREAM_API}.CONSUMER.CREATE.{stream}.>")
            for stream in (bindings, objects)
        ),
        *(Crossing(f"$JS.ACK.{stream}.>") for stream in (bindings, objects, queues)),
        *(
            Crossing(f"{JETSTREAM_API}.{endpoint}", f"{IMPORTED_JETSTREAM_API}.{endpoint}", is_stream)
            for endpoint, is_stream in api
        ),
        Crossing(f"{prefix}.scheduler.*.>", inward=False),
        Crossing(f"{prefix}.seed.*.>", inward=False),
        Crossing(subjects.plugin("*"), inward=False),
    )


COMES_IN_BY, AUTH_CALLOUT = "comes-in-by", "auth callout"
"""Metadata of the apiserver's endpoints where whoever comes from outside needs the identity service."""
