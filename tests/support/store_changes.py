"""Objects of the store's state machine: their keys, their first documents and strategies of changes."""

from typing import Any, cast

from hypothesis import strategies as st

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_requirements import RESOLVED
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import DemandLimits, WritePrecondition
from tests.support.builders import (
    a_condition,
    a_managed_seed,
    a_project,
    a_region_configmap,
    a_seed,
    a_shoot,
    a_shoot_state,
    merged,
    resolved_as,
)

HOSTS = [ObjectKey("shoot", "garden", f"h{number}") for number in range(2)]
SHOOTS = [*(ObjectKey("shoot", "garden-dev", f"s{number}") for number in range(4)), *HOSTS]
SEEDS = [ObjectKey("seed", "", name) for name in ("x", "y")]
PROJECTS = [ObjectKey("project", "", name) for name in ("p", "q")]
QUOTA = ObjectKey("resourcequota", "garden-dev", "gardener")
BINDING = ObjectKey("secretbinding", "garden-dev", "b")
LIMITS = ObjectKey("quota", "garden-dev", "limits")
SHOOTS_THERE = "count/shoots.core.gardener.cloud"
OTHERS = [QUOTA, BINDING, ObjectKey("configmap", "garden", "regions"), ObjectKey("secret", "garden", "owned")]
MANAGED_SEEDS = [ObjectKey("managedseed", "garden", name) for name in ("x", "y")]
SHOOT_STATES = [ObjectKey("shootstate", "garden-dev", "s0"), ObjectKey("shootstate", "garden", "h0")]
KEYS = [*SHOOTS, *SEEDS, *PROJECTS, *OTHERS, *MANAGED_SEEDS, *SHOOT_STATES]
SCHEDULERS = ("default-scheduler", "mine")

keys = st.sampled_from(KEYS)
seed_names = st.sampled_from(["x", "y", None])
small = st.integers(0, 3)
placements = st.tuples(st.sampled_from(SHOOTS), st.sampled_from(SEEDS), small, small)
finalizers = st.sampled_from([[], ["a"], ["a", "b"], ["gardener"]])


def changing(values: st.SearchStrategy[Any], *path: str) -> st.SearchStrategy[Document]:
    """Manifests that set one field."""

    def nested(value: Any) -> Document:
        for field in reversed(path):
            value = {field: value}
        return cast("Document", value)

    return values.map(nested)


operations = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["Create", "Reconcile", "Delete"]),
        "state": st.sampled_from(["Processing", "Succeeded", "Error", "?"]),
    },
    optional={"lastUpdateTime": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-09T00:00:00Z"])},
)
REQUIREMENTS = [
    None,
    resolved_as({"groups": ["pair"], "requests": {"cpu": 1000}}),
    resolved_as({"groups": ["pair", "web"], "requests": {"cpu": 2000, "memory": 1}}),
    resolved_as(
        {
            "groups": ["web"],
            "affinity": {"shootAntiAffinity": {"required": [{"group": "pair", "topologyKey": "seed"}]}},
        }
    ),
]
"""Requirements of shoots as admission resolves them: none, requests, groups, and a rule that keeps others off."""

GROUPS = ("pair", "web")

shoot_changes = st.one_of(
    st.sampled_from(REQUIREMENTS).map(lambda found: {"metadata": found or {"annotations": {RESOLVED: None}}}),
    changing(operations | st.none(), "status", "lastOperation"),
    changing(seed_names, "spec", "seedName"),
    changing(seed_names, "status", "seedName"),
    changing(small, "spec", "purpose"),
    changing(small.map(str), "spec", "cloudProfile", "name"),
    changing(st.sampled_from(["b", None]), "spec", "secretBindingName"),
    changing(st.sampled_from([[], [{"machine": {"type": "m"}, "maximum": 2}]]), "spec", "provider", "workers"),
)
seed_changes = st.one_of(
    changing(st.sampled_from(["0", "1", "1500m", "3", None]), "status", "allocatable", "shoots"),
    changing(st.sampled_from(["1", "3", None]), "status", "allocatable", "cpu"),
    changing(small.map(lambda number: [{"key": str(number)}]), "spec", "taints"),
    changing(
        st.sampled_from(["True", "?"]).map(lambda it: [a_condition("GardenletReady", it)]), "status", "conditions"
    ),
    changing(st.sampled_from(["garden/set", None]), "metadata", "annotations", REMOVAL_ANNOTATION),
)
project_changes = changing(small.map(lambda number: f"garden-{number}"), "spec", "namespace")
other_changes = changing(small.map(str), "data", "a")
any_changes = st.one_of(
    changing(finalizers, "metadata", "finalizers"),
    changing(small.map(str), "metadata", "labels", "a"),
    changing(small, "status", "n"),
    changing(st.just("kept"), "metadata", "annotations", "same"),
)
CHANGES = {
    "shoot": shoot_changes,
    "seed": seed_changes,
    "project": project_changes,
    "configmap": other_changes,
    "secret": other_changes,
    "resourcequota": changing(small.map(str), "spec", "hard", SHOOTS_THERE),
    "secretbinding": changing(st.sampled_from([[], [{"name": "limits"}]]), "quotas"),
    "managedseed": changing(st.sampled_from(["h0", "h1"]), "spec", "shoot", "name"),
    "shootstate": changing(small, "spec", "gardener"),
}


_CORE = {"apiVersion": "core.gardener.cloud/v1beta1"}

COUNTED = [
    WritePrecondition("quota", "", "too many"),
    WritePrecondition(
        "demand",
        LIMITS.stored,
        "too much",
        limits=DemandLimits({"lb": 2}, {"loadbalancers": {"lb": 1}, "bare-machines\tcloudprofile:_:aws\tm": {}}),
    ),
]
"""Guards of a creation: at most so many shoots, and two load balancers; of other profiles nothing is known."""


def first_document(key: ObjectKey, owner_uid: str) -> Document:
    """What a key holds when it is created."""
    match key.kind:
        case "shoot":
            scheduler = {"schedulerName": "mine"} if key == SHOOTS[3] else {}
            shoot = a_shoot(key.name, key.namespace, spec={**scheduler, "secretBindingName": "b"})
            requirements = {SHOOTS[1]: REQUIREMENTS[1], SHOOTS[2]: REQUIREMENTS[3]}.get(key)
            return merged(shoot, {"metadata": requirements or {}})
        case "resourcequota" | "secretbinding":
            metadata = {"name": key.name, "namespace": key.namespace}
            if key == BINDING:
                quotas = [{"name": "limits"}]
                return {**_CORE, "kind": "SecretBinding", "metadata": metadata, "quotas": quotas}
            hard = {SHOOTS_THERE: "3"}
            return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
        case "seed":
            return merged(a_seed(key.name, shoots="2"), {"status": {"allocatable": {"cpu": "3"}}})
        case "project":
            return a_project(key.name, "garden-0")
        case "configmap":
            return a_region_configmap(key.name)
        case "managedseed":
            return a_managed_seed(key.name, HOSTS[MANAGED_SEEDS.index(key)].name)
        case "shootstate":
            return a_shoot_state(key.name, key.namespace)
        case _:
            owners = [{"apiVersion": "v1", "kind": "Seed", "name": "x", "uid": owner_uid}]
            metadata = {"name": key.name, "namespace": key.namespace, "ownerReferences": owners}
            return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
