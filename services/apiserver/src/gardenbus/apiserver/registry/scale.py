"""Scale of a ManagedSeedSet: its number of replicas, read and written without anything else."""

from typing import Any

from gardenbus.apiserver.registry.preconditions import Precondition
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import Missing, WriteResult
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.request_bodies import ScaleRequest
from gardenbus.common.api.selectors import parse_selector
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.store import RequestOrigin

DEFAULT_REPLICAS = 1
"""Replicas of a set that states none, as Gardener defaults it."""


async def read_scale(request: ScaleRequest, reads: ReadCache) -> Document:
    """The present scale of a set. Raises NotFound."""
    stored = await reads.get(request.key)
    if stored is None:
        raise Missing(f"{request.key} not found")
    return scale_of(stored)


async def write_scale(  # noqa: PLR0913
    request: ScaleRequest,
    replicas: int,
    writer: Writer,
    reads: ReadCache,
    *,
    user: str,
    origin: RequestOrigin | None,
    condition: Precondition | None,
) -> WriteResult:
    """Set the replicas of a set. Raises NotFound, BadRequest, and StaleVersion when it has another version."""
    if replicas < 0:
        raise BadRequest(f"replicas: must not be negative, but is {replicas}")
    patch: Document = {"spec": {"replicas": replicas}}
    if request.resource_version:
        patch["metadata"] = {"resourceVersion": request.resource_version}
    return await writer.patch(request.key, patch, reads, user=user, origin=origin, condition=condition)


def scale_of(stored: StoredObject) -> Document:
    """Response for a set: `replicas` desired, `statusReplicas` present, its selector as kubectl writes it."""
    document = stored.document()
    wanted: Any = section(document, "spec").get("replicas")
    there: Any = section(document, "status").get("replicas")
    return {
        "replicas": DEFAULT_REPLICAS if wanted is None else wanted,
        "statusReplicas": there or 0,
        "selector": str(parse_selector(section(document, "spec", "selector"))),
        "resourceVersion": str(stored.version),
    }
