"""The scale of a ManagedSeedSet: how many replicas it shall have, read and written without touching anything else."""

from typing import Any

import msgspec

from gardenbus.apiserver.reconcilers.attempts import Missing, Written
from gardenbus.apiserver.reconcilers.preconditions import Condition
from gardenbus.apiserver.reconcilers.reads import Reads
from gardenbus.apiserver.reconcilers.writing import Writer
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.store import RequestOrigin
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.resources.selectors import parse_selector

DEFAULT_REPLICAS = 1
"""Replicas of a set that states none, as Gardener defaults it."""


class ScaleBody(msgspec.Struct, frozen=True, rename="camel"):
    """What `scale` is sent; without `replicas` it only asks."""

    name: str
    namespace: str = GARDEN_NAMESPACE
    replicas: int | None = None
    resource_version: str = ""

    @property
    def key(self) -> ObjectKey:
        """The set that is scaled."""
        return ObjectKey("managedseedset", self.namespace, self.name)


async def read_scale(asked: ScaleBody, reads: Reads) -> Document:
    """The scale of a set as it stands. Raises NotFound."""
    stored = await reads.get(asked.key)
    if stored is None:
        raise Missing(f"{asked.key} is not there")
    return scale_of(stored)


async def write_scale(  # noqa: PLR0913
    asked: ScaleBody,
    replicas: int,
    writer: Writer,
    reads: Reads,
    *,
    user: str,
    origin: RequestOrigin | None,
    condition: Condition | None,
) -> Written:
    """Set the replicas of a set. Raises NotFound, BadRequest, and StaleVersion when it has another version."""
    if replicas < 0:
        raise BadRequest(f"replicas: must not be negative, but is {replicas}")
    patch: Document = {"spec": {"replicas": replicas}}
    if asked.resource_version:
        patch["metadata"] = {"resourceVersion": asked.resource_version}
    return await writer.patch(asked.key, patch, reads, user=user, origin=origin, condition=condition)


def scale_of(stored: StoredObject) -> Document:
    """What is answered of a set: `replicas` wanted, `statusReplicas` there, its selector as kubectl writes it."""
    document = stored.document()
    wanted: Any = section(document, "spec").get("replicas")
    there: Any = section(document, "status").get("replicas")
    return {
        "replicas": DEFAULT_REPLICAS if wanted is None else wanted,
        "statusReplicas": there or 0,
        "selector": str(parse_selector(section(document, "spec", "selector"))),
        "resourceVersion": str(stored.version),
    }
