"""Whatever happens to a placement, its budgets hold at every write, and it arrives once its clusters are well.

Clusters fail, fall silent and recover, resources and numbers change, evictions come, and the service dies at any of its
writes or works twice at once.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.placement_parts import BOUND
from gardenbus.common.api.fleet.works import AVAILABLE
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Transient
from gardenbus.fleet.availability import OVERRIDDEN, is_true
from tests.support.overrides import an_ro, for_clusters, to
from tests.support.placements import WEB, a_configmap, a_crp, a_live_cluster, a_namespace
from tests.support.rolling import RollingBench, a_budget, a_request, an_eviction
from tests.support.stores import in_memory
from tests.support.watched_bindings import WatchedStore

CLUSTERS = "abcdef"
RESOURCES = ObjectKey("configmap", "web", "settings")
Action = tuple[str, int]
OVERRIDE = ObjectKey("resourceoverride", "web", "one")
DECIDED = ("resources", "number", "policy", "override")

actions = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "resources",
                "number",
                "policy",
                "limits",
                "break",
                "mend",
                "hush",
                "wake",
                "evict",
                "budget",
                "override",
                "no override",
                "look",
                "roll",
                "roll",
                "roll twice",
                "work",
                "agents",
                "everything",
                "everything",
            ]
        ),
        st.integers(0, 11),
    ),
    min_size=15,
    max_size=40,
)
limits = st.tuples(st.sampled_from([1, 2, "25%", "100%"]), st.sampled_from([0, 1, "25%", "100%"]))
policies = st.sampled_from(["PickAll", "PickN", "PickN"])


class Life:
    """A placement and what happens to it."""

    def __init__(self, kind: str, allowed: tuple[int | str, int | str]) -> None:
        kit = in_memory()
        self.store = WatchedStore(kit.clock)
        kit.store = self.store
        self.bench = RollingBench(kit)
        self.kind = kind
        self.allowed = allowed
        self.count = 0

    async def begin(self, *, at_rest: bool) -> None:
        for name in CLUSTERS:
            await self.bench.add(a_live_cluster(name, self.bench.clock, {"half": str(CLUSTERS.index(name) % 2)}))
        spec: Document = {"strategy": self._strategy()}
        if self.kind == "PickN":
            spec["policy"] = {"placementType": "PickN", "numberOfClusters": 3}
        await self.bench.add(a_namespace(), a_configmap(), a_crp(spec=spec))
        if at_rest:
            await self._come_to_rest()

    async def happen(self, action: str, number: int, dies_after: int) -> None:
        """Let something happen; the service dies after so many writes (-1: it does not)."""
        cluster = CLUSTERS[number % len(CLUSTERS)]
        self.count += 1
        outside: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "resources": lambda: self.bench.change({"data": {"version": str(self.count)}}, RESOURCES),
            "number": lambda: self._number(number % 6),
            "policy": lambda: self._prefer(number % 3),
            "override": lambda: self._override(number),
            "no override": self._no_override,
            "limits": self._limits,
            "budget": lambda: self._budget(number),
            "break": lambda: self._set(self.bench.broken.add, cluster),
            "mend": lambda: self._set(self.bench.broken.discard, cluster),
            "hush": lambda: self._set(self.bench.silent.add, cluster),
            "wake": lambda: self._set(self.bench.silent.discard, cluster),
            "agents": self.bench.agents,
        }
        if action in outside:
            await outside[action]()
            if action not in DECIDED:
                return
            action = "look"  # what is asked for is decided soon, so that there is something to roll out
        inside: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "look": self.bench.reconcile_once,
            "roll": self.bench.roll,
            "roll twice": self._roll_twice,
            "work": self.bench.work,
            "everything": self.bench.everything,
            "evict": lambda: self._evict(cluster),
        }
        self.store.writes_left = dies_after
        with suppress(Transient):
            await inside[action]()
        self.store.writes_left = -1
        self.store.evicting = ""

    async def arrive(self) -> None:
        """Mend everything, look until nothing moves, and see that it is where it should be."""
        self.bench.broken.clear()
        self.bench.silent.clear()
        await self._come_to_rest()
        views = await self.bench.views()
        placement = await self.bench.get()
        if self.kind == "PickAll":
            assert {each.spec.target_cluster for each in views} == set(CLUSTERS)
        else:
            assert len(views) == section(placement, "spec", "policy")["numberOfClusters"]
        latest = f"web-{placement['status']['observedResourceIndex']}-snapshot"
        for each in views:
            assert (each.spec.state, each.spec.resource_snapshot_name) == (BOUND, latest)
            assert is_true(each, AVAILABLE)
            assert is_true(each, OVERRIDDEN)
        assert await self._shown_shades() == await self._wanted_shades()
        assert set(await self.bench.on_clusters()) == {each.spec.target_cluster for each in views}

    async def leave(self) -> None:
        """Delete it, and see that nothing is left."""
        await self.store.delete(await self.bench.kit.now(WEB))
        await self._come_to_rest()
        assert await self.store.get(WEB) is None
        assert await self.bench.bindings() == []
        assert await self.bench.all_works() == []

    async def _come_to_rest(self) -> None:
        quiet = 0
        for _ in range(150):
            before = await self.bench.version()
            with suppress(Transient):
                await self.bench.everything()
            self.bench.clock.advance(0.1)
            quiet = quiet + 1 if await self.bench.version() == before else 0
            if quiet == 3:
                return
        raise AssertionError("it does not come to rest")

    async def _roll_twice(self) -> None:
        """Two replicas at once: each gives way to the other at every call."""
        self.store.gives_way = True
        another = RollingBench(self.bench.kit)
        await another.cache.read(self.store)
        await self.bench.cache.read(self.store)
        request = a_request(WEB, "placementrollout")
        ended = await asyncio.gather(
            self.bench.rollout.reconcile(request), another.rollout.reconcile(request), return_exceptions=True
        )
        self.store.gives_way = False
        for each in ended:
            if isinstance(each, BaseException) and not isinstance(each, Transient):
                raise each

    async def _evict(self, cluster: str) -> None:
        self.store.evicting = cluster
        name = f"e{self.count}"
        left, self.store.writes_left = self.store.writes_left, -1
        await self.bench.add(an_eviction(name, cluster))
        self.store.writes_left = left
        await self.bench.evict(name)

    async def _budget(self, number: int) -> None:
        key = ObjectKey("clusterresourceplacementdisruptionbudget", "", "web")
        if await self.store.get(key) is None:
            await self.bench.add(a_budget(minAvailable=number % 4))

    async def _number(self, number: int) -> None:
        if self.kind == "PickN":
            await self.bench.change({"spec": {"policy": {"numberOfClusters": number}}})

    async def _prefer(self, half: int) -> None:
        """Another policy, so that bindings are replaced."""
        if self.kind != "PickN":
            return
        term = {"weight": 10, "preference": {"labelSelector": {"matchLabels": {"half": str(half)}}}}
        affinity = {"clusterAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
        await self.bench.change({"spec": {"policy": {"affinity": affinity}}})

    async def _override(self, number: int) -> None:
        """Another override, for half of the clusters."""
        rule = for_clusters(to("/data/shade", f"${{MEMBER-CLUSTER-NAME}}-{number}", "add"), half=str(number % 2))
        if await self.store.get(OVERRIDE) is None:
            await self.bench.add(an_ro(rule))
        else:
            await self.bench.change({"spec": {"policy": {"overrideRules": [rule]}}}, OVERRIDE)
        await self.bench.snapshot_overrides()

    async def _no_override(self) -> None:
        stored = await self.store.get(OVERRIDE)
        if stored is None:
            return
        await self.store.delete(stored)
        for dependent in await self.store.dependents(stored.uid):
            await self.store.delete(await self.bench.kit.now(dependent))

    async def _shown_shades(self) -> dict[str, Any]:
        """What the Works on each cluster say of the shade."""
        found: dict[str, Any] = {}
        for work in await self.bench.all_works():
            for each in section(work.document(), "spec", "workload")["manifests"]:
                if each["kind"] == "ConfigMap":
                    found[work.key.namespace.removeprefix("fleet-member-")] = each["data"].get("shade")
        return found

    async def _wanted_shades(self) -> dict[str, Any]:
        stored = await self.store.get(OVERRIDE)
        clusters = {each.spec.target_cluster for each in await self.bench.views()}
        if stored is None:
            return dict.fromkeys(clusters)
        (rule,) = section(stored.document(), "spec", "policy")["overrideRules"]
        half = rule["clusterSelector"]["clusterSelectorTerms"][0]["labelSelector"]["matchLabels"]["half"]
        number = rule["jsonPatchOverrides"][0]["value"].rpartition("-")[2]
        return {name: f"{name}-{number}" if str(CLUSTERS.index(name) % 2) == half else None for name in clusters}

    async def _limits(self) -> None:
        self.allowed = (self.allowed[0], 1)
        await self.bench.change({"spec": {"strategy": self._strategy()}})

    def _strategy(self) -> Document:
        unavailable, surge = self.allowed
        update = {"maxUnavailable": unavailable, "maxSurge": surge, "unavailablePeriodSeconds": 1}
        return {"type": "RollingUpdate", "rollingUpdate": update}

    @staticmethod
    async def _set(change: Callable[[str], None], cluster: str) -> None:
        change(cluster)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=policies,
    allowed=limits,
    at_rest=st.booleans(),
    happening=actions,
    deaths=st.lists(st.integers(-1, 9), min_size=40, max_size=40),
)
def test_budgets_hold_at_every_write_and_a_rollout_ends(
    kind: str, allowed: tuple[int | str, int | str], *, at_rest: bool, happening: list[Action], deaths: list[int]
) -> None:
    async def live() -> None:
        life = Life(kind, allowed)
        await life.begin(at_rest=at_rest)
        for (action, number), dies_after in zip(happening, deaths, strict=False):
            await life.happen(action, number, dies_after)
        await life.arrive()
        await life.leave()

    asyncio.run(live())
