"""The whole landscape as plans need it: read once through the API, decided on with the scheduler's own code."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.cli.client import ApiClient
from gardenbus.cli.documents import as_mapping
from gardenbus.cli.output import RefusedByApi
from gardenbus.common.errors import Unavailable
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import GARDEN_NAMESPACE
from gardenbus.common.resources.shoots import TESTING_PURPOSE
from gardenbus.scheduling.landscape import SAME_REGION, STRATEGIES, Snapshot
from gardenbus.scheduling.moving import Hosting, hosted_seeds
from gardenbus.scheduling.simulate import snapshot_of
from gardenbus.scheduling.user_filters import SeedFilter

_LISTS = ("seed", "shoot", "cloudprofile", "namespacedcloudprofile", "project", f"configmap.{GARDEN_NAMESPACE}")
_ASKED_FOR_STRATEGY = 3


class Survey(NamedTuple):
    """Seeds with their usage, all shoots, and which shoots host which seeds."""

    snapshot: Snapshot
    shoots: Sequence[Document]
    hosting: Hosting


async def present(api: ApiClient) -> tuple[list[Document], str]:
    """All that decisions read, and the strategy of the running scheduler. Raises RefusedByApi, Unavailable."""
    lists = await asyncio.gather(*map(api.items, _LISTS))
    return [document for documents in lists for document in documents], await _strategy(api, lists[1])


async def survey(api: ApiClient, filters: Sequence[SeedFilter] = ()) -> Survey:
    """Read the landscape. Raises RefusedByApi, Unavailable."""
    *lists, managed_seeds = await asyncio.gather(*map(api.items, (*_LISTS, f"managedseed.{GARDEN_NAMESPACE}")))
    shoots = lists[1]
    strategy = await _strategy(api, shoots)
    documents = [document for documents in lists for document in documents]
    return Survey(snapshot_of(documents, strategy, filters), shoots, hosted_seeds(shoots, managed_seeds))


async def _strategy(api: ApiClient, shoots: Sequence[Document]) -> str:
    """The strategy of the running scheduler, which it tells with every explanation; SameRegion if it tells nothing."""
    candidates = [shoot for shoot in shoots if as_mapping(shoot.get("spec")).get("purpose") != TESTING_PURPOSE]
    for shoot in candidates[:_ASKED_FOR_STRATEGY]:
        metadata = as_mapping(shoot.get("metadata"))
        try:
            answer = await api.ask(f"explain.shoot.{metadata.get('namespace')}.{metadata.get('name')}")
        except (RefusedByApi, Unavailable):
            continue
        strategy = as_mapping(as_mapping(answer).get("considered")).get("strategy")
        if strategy in STRATEGIES:
            return str(strategy)
    return SAME_REGION
