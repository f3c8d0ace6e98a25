"""State collector for plans: reads the whole landscape through the API, as a snapshot of the scheduler's own code."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.shoots import TESTING_PURPOSE
from gardenbus.common.api.garden.strategies import SAME_REGION, STRATEGIES
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.errors import Unavailable
from gardenbus.scheduling.descheduling.relocation import HostedSeeds, hosted_seeds
from gardenbus.scheduling.snapshot import Snapshot
from gardenbus.scheduling.user_filters import SeedFilter

_LISTS = ("seed", "shoot", "cloudprofile", "namespacedcloudprofile", "project", f"configmap.{GARDEN_NAMESPACE}")
_MAX_STRATEGY_QUERIES = 3


class CollectedState(NamedTuple):
    """Seeds with their usage, all shoots, and which shoots host which seeds."""

    snapshot: Snapshot
    shoots: Sequence[Document]
    hosting: HostedSeeds


async def current_documents(api: ApiClient) -> tuple[list[Document], str]:
    """All documents that decisions read, and the strategy of the running scheduler. Raises ApiError, Unavailable."""
    lists = await asyncio.gather(*map(api.items, _LISTS))
    return [document for documents in lists for document in documents], await _strategy(api, lists[1])


async def collect_state(
    api: ApiClient, filters: Sequence[SeedFilter] = (), *, shoots: Sequence[Document] | None = None
) -> CollectedState:
    """Collect the state of the landscape; `shoots` where they have been read. Raises ApiError, Unavailable."""
    wanted = [each for each in _LISTS if each != "shoot"]
    *lists, managed_seeds = await asyncio.gather(*map(api.items, (*wanted, f"managedseed.{GARDEN_NAMESPACE}")))
    if shoots is None:
        shoots = await api.items("shoot")
    strategy = await _strategy(api, shoots)
    documents = [document for documents in (*lists, shoots) for document in documents]
    return CollectedState(snapshot_of(documents, strategy, filters), shoots, hosted_seeds(shoots, managed_seeds))


async def _strategy(api: ApiClient, shoots: Sequence[Document]) -> str:
    """The strategy of the running scheduler, by an explanation of it; SameRegion when none has it."""
    candidates = [shoot for shoot in shoots if as_mapping(shoot.get("spec")).get("purpose") != TESTING_PURPOSE]
    for shoot in candidates[:_MAX_STRATEGY_QUERIES]:
        metadata = as_mapping(shoot.get("metadata"))
        try:
            response = await api.call(f"explain.shoot.{metadata.get('namespace')}.{metadata.get('name')}")
        except (ApiError, Unavailable):
            continue
        strategy = as_mapping(as_mapping(response).get("considered")).get("strategy")
        if strategy in STRATEGIES:
            return str(strategy)
    return SAME_REGION
