"""Services of a landscape, from their responses on `$SRV.STATS`. Pure."""

from collections.abc import Iterable

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.rows import number, text


class ServiceReplica(msgspec.Struct, frozen=True, rename="camel"):
    """One process of a service, since its start: requests that it responded to, and how many of them were errors."""

    instance: str
    version: str
    started: str
    requests: int
    errors: int


class Service(msgspec.Struct, frozen=True):
    """One service: its versions (more than one during an upgrade) and its replicas."""

    name: str
    versions: list[str]
    replicas: list[ServiceReplica]


def services_of(responses: Iterable[Document], prefix: str) -> list[Service]:
    """Return the services of one landscape by name; those of other landscapes on the same server are left out."""
    found: dict[str, list[ServiceReplica]] = {}
    for response in responses:
        metadata = section(response, "metadata")
        if text(metadata.get("prefix")) not in ("", prefix):
            continue
        endpoints = mappings(response.get("endpoints"))
        replica = ServiceReplica(
            instance=text(metadata.get("instance")) or text(response.get("id")),
            version=text(response.get("version")),
            started=text(response.get("started")),
            requests=sum(number(each.get("num_requests")) for each in endpoints),
            errors=sum(number(each.get("num_errors")) for each in endpoints),
        )
        found.setdefault(text(response.get("name")), []).append(replica)
    return [
        Service(name, sorted({each.version for each in replicas}), sorted(replicas, key=lambda each: each.instance))
        for name, replicas in sorted(found.items())
    ]
