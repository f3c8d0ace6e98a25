"""Reads which shoots host which seeds: where a control plane can never go."""

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.controller.listing import list_all
from gardenbus.common.ports.store import Store
from gardenbus.scheduling.descheduling.relocation import HostedSeeds, hosted_seeds


async def read_hosting(store: Store) -> HostedSeeds:
    """The seeds that each shoot behind a ManagedSeed hosts. Raises Unavailable."""
    managed_seeds = await _in_garden(store, "managedseed")
    return hosted_seeds(await _in_garden(store, "shoot"), managed_seeds) if managed_seeds else {}


async def _in_garden(store: Store, kind: str) -> list[Document]:
    return [stored.document() for stored in await list_all(store, kind, GARDEN_NAMESPACE)]
