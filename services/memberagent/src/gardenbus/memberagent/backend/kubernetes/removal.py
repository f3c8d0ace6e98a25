"""Removes objects of a Work, in the reverse of the order in which they were applied.

A wave is begun once the one before it is gone; finalizers that hang hold it up, and are named. What others own as well
stays, without the fields of the Work.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.agent.kubernetes.connection import ClusterConnection
from gardenbus.agent.kubernetes.errors import Throttled, Unauthorized, Unreachable
from gardenbus.common.api.document import section
from gardenbus.common.api.fleet.apply_order import wave_of
from gardenbus.common.errors import Conflict, GardenbusError
from gardenbus.memberagent.backend.kubernetes.inventory import FIELD_MANAGER, AppliedResource, Inventory
from gardenbus.memberagent.backend.kubernetes.ownership import belongs_to, deletion_problem, other_owners, without_marks

T = TypeVar("T")

WHOLE_CLUSTER = (Unreachable, Throttled, Unauthorized)
"""Errors that are not about one object."""

AT_ONCE = 8
"""Requests to one cluster at a time, for one Work."""


async def together(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results; raises the first error once all have ended."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    found: list[T] = []
    for each in results:
        if isinstance(each, BaseException):
            raise each
        found.append(each)
    return found


async def remove_resources(
    connection: ClusterConnection, inventory: Inventory, work: str, resources: Sequence[AppliedResource]
) -> str | None:
    """Remove objects and take them out of the inventory; returns what is left of the first wave that is not gone.

    Raises what concerns the whole cluster.
    """
    slots = asyncio.Semaphore(AT_ONCE)
    waves: dict[int, list[AppliedResource]] = {}
    for each in resources:
        waves.setdefault(wave_of(each.group, each.kind), []).append(each)
    for _, wave in sorted(waves.items(), reverse=True):
        problems = await together(
            [_each(slots, each, partial(_try_to_remove, connection.client, work)) for each in wave]
        )
        gone = {each.key for each, problem in zip(wave, problems, strict=True) if problem is None}
        left = [each for each in inventory.works[work].resources if each.key not in gone]
        await inventory.record(connection, work, left)
        if first := next((problem for problem in problems if problem is not None), None):
            return first
    return None


async def _each(
    slots: asyncio.Semaphore, resource: AppliedResource, act: Callable[[AppliedResource], Awaitable[str | None]]
) -> str | None:
    """The result of an act on one object, or its error as a sentence. Raises what concerns the whole cluster."""
    async with slots:
        try:
            return await act(resource)
        except WHOLE_CLUSTER:
            raise
        except GardenbusError as error:
            return f"{resource.key}: {error.reason}: {error.message}"


async def abandon_resources(
    connection: ClusterConnection, work: str, resources: Sequence[AppliedResource]
) -> str | None:
    """Leave objects in the cluster without the marks of a Work; returns what still has them.

    Raises what concerns the whole cluster.
    """
    slots = asyncio.Semaphore(AT_ONCE)
    problems = await together([_each(slots, each, partial(_abandon, connection.client, work)) for each in resources])
    return next((problem for problem in problems if problem is not None), None)


async def _abandon(client: KubernetesClient, work: str, resource: AppliedResource) -> str | None:
    live = await client.get(resource.path)
    if live is not None and belongs_to(live, work):
        await client.merge_patch(resource.path, without_marks(live, work), manager=FIELD_MANAGER)
    return None


async def _try_to_remove(client: KubernetesClient, work: str, resource: AppliedResource) -> str | None:
    live = await client.get(resource.path)
    if live is None or not belongs_to(live, work):
        return None
    if other_owners(live, work):
        named = {"name": resource.name, **({"namespace": resource.namespace} if resource.namespace else {})}
        bare = {"apiVersion": resource.served_as.api_version, "kind": resource.kind, "metadata": named}
        await client.apply(resource.path, bare, manager=FIELD_MANAGER)
        return None
    if not section(live, "metadata").get("deletionTimestamp"):
        try:
            await client.delete(resource.path, uid=str(section(live, "metadata").get("uid")))
        except Conflict:
            return f"{resource.key}: it was made anew meanwhile"
        live = await client.get(resource.path)
    return None if live is None else f"{resource.key}: {deletion_problem(live) or 'it is there again'}"
