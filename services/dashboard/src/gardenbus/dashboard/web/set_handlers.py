"""Request handler of a set's page: its replicas as seeds, its rollout, and why it scales."""

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import AutoscalerRow
from gardenbus.common.api.keys import ObjectKey
from gardenbus.dashboard.api_client import GardenApiClient
from gardenbus.dashboard.domain.set_outlook import next_of_autoscaler, next_of_set, rollout_of
from gardenbus.dashboard.domain.tree_nodes import seed_state, shoot_state
from gardenbus.dashboard.watch.landscape import DashboardCache
from gardenbus.dashboard.web.acting import acting
from gardenbus.dashboard.web.responses import json_response

MOST_REPLICAS = 100


class SetHandlers:
    """Read-only handler."""

    def __init__(self, *, cache: DashboardCache, api: GardenApiClient) -> None:
        self._cache = cache
        self._api = api

    async def outlook(self, request: Request) -> Response:
        """Respond with a set's replicas, rollout and autoscalers. Raises NotFound."""
        key = ObjectKey("managedseedset", request.path_params["namespace"], request.path_params["name"])
        api, scalers = acting(self._api, request), self._scalers(key)
        document, *autoscalers = await asyncio.gather(api.get(key), *map(api.get, scalers))
        managed = self._cache.managed_seeds_of(key)
        rollout = rollout_of(document)
        return json_response(
            {
                "replicas": [self._replica(each) for each in managed[:MOST_REPLICAS]],
                "total": len(managed),
                "rollout": rollout._asdict() | {"isDone": rollout.is_done},
                "next": next_of_set(document),
                "autoscalers": [
                    {"name": scaler.name, "why": next_of_autoscaler(each)}
                    for scaler, each in zip(scalers, autoscalers, strict=True)
                ],
            }
        )

    def _scalers(self, key: ObjectKey) -> Sequence[ObjectKey]:
        rows: list[tuple[ObjectKey, AutoscalerRow]] = sorted(self._cache.autoscalers.items())
        return [each for each, row in rows if row.target == key.name and each.namespace == key.namespace]

    def _replica(self, managed: ObjectKey) -> Document:
        """A replica: its seed with shoots and condition, and the shoot that hosts it."""
        cache, seed = self._cache, ObjectKey("seed", "", managed.name)
        row, hosting = cache.seeds.get(seed), cache.shoots.get(ObjectKey("shoot", managed.namespace, managed.name))
        tone, words = seed_state(row, cache.used(managed.name))
        host_tone, host_words = shoot_state(hosting)
        return {
            "name": managed.name,
            "namespace": managed.namespace,
            "seed": None if row is None else cache.shown_seed(row),
            "tone": tone,
            "words": words,
            "condition": "" if row is None else row.message,
            "troubles": len(cache.troubled_on(managed.name)),
            "host": "" if hosting is None else hosting.seed,
            "hostTone": host_tone,
            "hostWords": host_words,
        }
