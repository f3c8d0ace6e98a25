"""What is kept from decision to decision never makes a difference: seeds, profiles, distances and usage may change."""

import copy
import json
import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.configuration.scheduler import parse_configuration
from gardenbus.common.api.document import Document, StoredObject, split
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.garden.strategies import STRATEGIES
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import UnblockIndexes, Usage
from gardenbus.scheduling import usage_index
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.cache import SchedulingCache
from gardenbus.scheduling.equivalence_classes import pending_shoot, request_of
from gardenbus.scheduling.free_capacity import FreeCapacity
from gardenbus.scheduling.results import Assignment, SchedulingResult
from gardenbus.scheduling.scores import usage_heaps, usage_levels
from gardenbus.scheduling.snapshot import Snapshot
from tests.support import naive_scheduler
from tests.support.generated_landscapes import (
    NAMES,
    landscapes,
    profiles,
    region_configmaps,
    seeds,
    shoots,
    strategy_names,
)
from tests.support.naive_profile import NaiveProfile

Score = tuple[str, int, dict[str, Any]]
"""Name, weight, arguments."""

_weights = st.integers(1, 100)
_shape = [{"utilization": 10, "score": 0}, {"utilization": 50, "score": 10}, {"utilization": 90, "score": 3}]
_resources = [{"name": "shoots", "weight": 3}, {"name": "cpu", "weight": 1}]
_fits = st.sampled_from(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]).map(
    lambda kind: {"type": kind, "resources": _resources, **({"shape": _shape} if kind.startswith("R") else {})}
)
_terms = st.sampled_from(
    [{"matchLabels": {"env": "prod"}}, {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}]
)
_added = st.fixed_dictionaries(
    {"preferred": st.lists(st.fixed_dictionaries({"weight": _weights, "preference": _terms}), min_size=1, max_size=2)},
    optional={
        "purposes": st.just(["evaluation"]),
        "required": st.lists(_terms, min_size=1, max_size=2),
    },
)
_load = {"annotation": "load", "min": "0", "max": "1"}
score_lists = st.lists(
    st.one_of(
        st.tuples(st.just("SeedResourcesFit"), _weights, _fits.map(lambda fit: {"scoringStrategy": fit})),
        st.tuples(st.just("SeedResourcesBalancedAllocation"), _weights, st.just({"resources": [{"name": "shoots"}]})),
        st.tuples(st.just("MinimalDistance"), _weights, st.sampled_from([{}, {"farthest": 3}])),
        st.tuples(st.just("SeedZoneFit"), _weights, st.just({})),
        st.tuples(st.just("SeedAffinity"), _weights, _added.map(lambda added: {"addedAffinity": [added]})),
        st.tuples(
            st.just("SeedAnnotation/load"), _weights, st.sampled_from([_load, {**_load, "reverse": True, "missing": 9}])
        ),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda score: score[0],
)

EXAMPLES = int(os.environ.get("GARDENBUS_EXAMPLES", "100"))
pytestmark = pytest.mark.timeout(max(150, EXAMPLES))  # a second an example, when many are asked for
STEPS = 6


class NothingSeen:
    unblock_index = 0

    def objects(self, kind: str) -> Mapping[ObjectKey, StoredObject]:
        raise AssertionError(kind)

    async def wait_for_unblock_index(self, unblock_index: int, timeout_seconds: float) -> bool:
        raise AssertionError(unblock_index)


class Churning:
    """A landscape as documents, and as the scheduler comes to know it, change by change."""

    def __init__(self, documents: list[Document], strategy: str, scores: list[Score] | None = None) -> None:
        self.strategy = strategy
        self.profile = profile_of(scores, strategy) if scores is not None else SchedulingProfile(strategy=strategy)
        self.naive = NaiveProfile(scores) if scores is not None else None
        self.current = SchedulingCache(NothingSeen(), strategy, profiles=[self.profile])
        self.documents: dict[ObjectKey, Document] = {}
        self.version = 0
        self.usage: Counter[str] = Counter()
        for document in documents:
            self.put(document)

    def put(self, document: Document) -> None:
        key, self.version = key_of(document), self.version + 1
        self.documents[key] = document
        if document["kind"] != "Shoot":
            self.current.changed(key, None, stored(document, self.version))

    def remove(self, key: ObjectKey) -> None:
        if self.documents.pop(key, None) is not None and key.kind != "shoot":
            self.current.changed(key, None, None)

    def add_usage(self) -> None:
        """What the store would say by now, of the seeds whose usage changed."""
        self.version += 1
        now = Counter(naive_scheduler.usage_of(list(self.documents.values())))
        changed = {name: now[name] for name in now.keys() | self.usage.keys() if now[name] != self.usage[name]}
        self.usage = now
        self.current.record_usage(Usage(self.version, changed, UnblockIndexes(0, 0)))

    def decide_on(self, shoot: Document) -> str | None:
        """Decide in all ways there are; they must agree."""
        documents = list(self.documents.values())
        reads_purpose = self.profile.reads_purpose
        request = request_of(pending_shoot(stored(shoot, 1)), reads_purpose=reads_purpose)
        assert request == request_of(Shoot.from_document(shoot), reads_purpose=reads_purpose)
        kept, plain = self.current.working_snapshot("default-scheduler"), snapshot_of(documents)
        anew = Snapshot(plain.landscape.with_profile(self.profile), plain.usage)
        outcome = decide(request, kept)
        expected = decide(request, anew)
        if isinstance(outcome, Assignment) and isinstance(expected, Assignment):
            outcome = msgspec.structs.replace(outcome, scheduling_generation=None)
        assert comparable(outcome) == comparable(expected)
        assert FreeCapacity(kept).shoots(request) == FreeCapacity(anew).shoots(request)
        try:
            chosen = naive_scheduler.schedule(copy.deepcopy(shoot), copy.deepcopy(documents), self.strategy, self.naive)
        except naive_scheduler.NoSeed:
            chosen = None
        assert chosen == (outcome.seed if isinstance(outcome, Assignment) else None)
        if isinstance(outcome, Assignment):
            kept.assume(outcome.seed)  # the next snapshot takes it back, unless the store reports it
        return chosen


def profile_of(scores: list[Score], strategy: str) -> SchedulingProfile:
    """The profile of a configuration with these scores."""
    configured = [{"name": name, "args": args} for name, _, args in scores if args]
    profile = {
        "candidateDeterminationStrategy": strategy,
        "plugins": {"score": {"enabled": [{"name": name, "weight": weight} for name, weight, _ in scores]}},
        "pluginConfig": configured,
    }
    head = {"apiVersion": "scheduler.config.gardener.cloud/v1alpha1", "kind": "SchedulerConfiguration"}
    (found,) = parse_configuration(json.dumps({**head, "profiles": [profile]})).profiles
    return found


def comparable(outcome: SchedulingResult) -> SchedulingResult:
    """All of it, but for the runner-up where clashing networks may keep it from being looked for."""
    if isinstance(outcome, Assignment) and len(NAMES) > usage_heaps.MAX_ASIDE:
        return msgspec.structs.replace(outcome, runner_up=None)
    return outcome


def key_of(document: Document) -> ObjectKey:
    metadata = document["metadata"]
    return ObjectKey(document["kind"].lower(), metadata.get("namespace") or "", metadata["name"])


def stored(document: Document, version: int) -> StoredObject:
    return StoredObject(
        key=key_of(document),
        parts=split({"apiVersion": "v1", **document}),
        uid="",
        version=version,
        generation=1,
        created_at="2026-01-01T00:00:00Z",
        deleting_at=document["metadata"].get("deletionTimestamp") or "",
        scheduling_generation=version,
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(landscapes(), st.data(), strategy_names)
def test_a_landscape_that_is_kept_up_to_date_decides_like_one_made_anew(
    documents: list[Document], data: st.DataObject, strategy: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(usage_heaps, "MAX_ASIDE", data.draw(st.sampled_from([1, 8])))
        patch.setattr(usage_heaps, "MAX_DIFFERENCE", data.draw(st.sampled_from([-1, 4])))
        patch.setattr(usage_heaps, "MAX_ENTRIES", data.draw(st.sampled_from([5, 500_000])))
        _decide_and_churn(documents, data, strategy)


@settings(max_examples=EXAMPLES, deadline=None)
@given(landscapes(), st.data(), st.sampled_from(STRATEGIES), score_lists)
def test_levels_choose_like_a_naive_scorer_whatever_changes(
    documents: list[Document], data: st.DataObject, strategy: str, scores: list[Score]
) -> None:
    by_name = {score[0]: score for score in scores}
    if strategy == "Weighted":
        by_name.setdefault("MinimalDistance", ("MinimalDistance", 1, {}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(usage_levels, "MAX_ASIDE", data.draw(st.sampled_from([1, 8])))
        patch.setattr(usage_index, "MAX_LOGGED", data.draw(st.sampled_from([3, 100_000])))
        _decide_and_churn(documents, data, strategy, list(by_name.values()))


def _decide_and_churn(
    documents: list[Document], data: st.DataObject, strategy: str, scores: list[Score] | None = None
) -> None:
    pending = [each for each in documents if each["kind"] == "Shoot" and not each["spec"].get("seedName")]
    pending = [each for each in pending if each["spec"].get("schedulerName") != "mine"]
    churning = Churning([each for each in documents if each not in pending], strategy, scores)
    churning.add_usage()
    for step in range(STEPS):
        for shoot in pending:
            chosen = churning.decide_on(shoot)
            if chosen and data.draw(st.booleans()):  # it is really bound
                name = f"bound-{step}-{shoot['metadata']['name']}"
                churning.put(
                    {
                        "kind": "Shoot",
                        "metadata": {"name": name, "namespace": "garden-dev"},
                        "spec": {"seedName": chosen, "provider": {"type": "aws"}},
                    }
                )
                churning.add_usage()
        _churn(churning, data)
        churning.add_usage()
        pending = data.draw(st.permutations(pending)) if pending else [data.draw(shoots(step))]


def _churn(churning: Churning, data: st.DataObject) -> None:
    match data.draw(st.sampled_from(["seed", "seed", "seed-gone", "profile", "distances", "shoots-gone", "project"])):
        case "seed":
            seed = data.draw(seeds(data.draw(st.sampled_from([*NAMES, "another", "zoo"]))))
            annotations = seed["metadata"].setdefault("annotations", {})
            annotations |= data.draw(st.sampled_from([{}, {"load": "0.5"}, {"load": "2"}, {"load": "high"}]))
            churning.put(seed)
        case "seed-gone":
            churning.remove(ObjectKey("seed", "", data.draw(st.sampled_from(NAMES))))
        case "profile":
            churning.put({"kind": "CloudProfile", "metadata": {"name": "cp"}, "spec": data.draw(profiles)})
        case "distances":
            name = data.draw(st.sampled_from(["regions-a", "regions-b"]))
            for key in [key for key in churning.documents if key.kind == "configmap" and key.name == name]:
                churning.remove(key)
            churning.put(data.draw(region_configmaps(name)))
        case "project":
            churning.remove(ObjectKey("project", "", "dev"))
            if data.draw(st.booleans()):
                project = {"metadata": {"name": "dev"}, "spec": {"namespace": "garden-dev"}}
                churning.put({"kind": "Project", **project})
        case _:
            placed = [key for key, document in churning.documents.items() if document["kind"] == "Shoot"]
            for key in placed[: data.draw(st.integers(0, 3))]:
                churning.remove(key)
