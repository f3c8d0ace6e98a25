"""Hypothesis strategies for small landscapes in which most things happen: seeds, profiles, distances, shoots."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# Strategies of lambdas have no types to speak of.

import functools
import json
from typing import Any

import msgspec
from hypothesis import strategies as st

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.tolerations import UNCHECKED_TOLERATIONS
from tests.support.builders import a_condition

REGIONS = ["eu-west-1", "eu-west-1", "eu-central-1", "northeurope", "westeurope", "región-öst"]
PROVIDERS = ["aws", "aws", "aws", "gcp"]
ZONES = ["a", "b", "c", "d"]
RANGES = [
    "10.0.0.0/16",
    "10.0.128.0/20",
    "10.96.0.0/12",
    "192.168.0.0/24",
    "242.0.0.0/16",
    "2001:db8::/48",
    "2001:db8:1::/48",
]
NAMES = [f"s{number}" for number in range(8)]
DOMAINS = ["example.com", "dev.example.com", "other.org"]


def sparse(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Document]:
    """A mapping with any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def few(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Document]:
    """A mapping with at most two of the fields: with all of them at once nothing would ever fit."""
    return _chosen(some_of(list(fields), 2), fields)


@st.composite
def _chosen(
    draw: st.DrawFn, names: st.SearchStrategy[list[str]], fields: dict[str, st.SearchStrategy[Any]]
) -> Document:
    return {name: draw(fields[name]) for name in draw(names)}


def own(document: Document) -> Document:
    """A copy: what a strategy draws from a list is the same object each time."""
    return msgspec.json.decode(msgspec.json.encode(document))


def some_of(values: list[str], most: int = 3) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), max_size=most, unique=True)


labels = sparse({"env": st.sampled_from(["dev", "prod"]), "tier": st.sampled_from(["gold", "silver"])})
expressions = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values},
    st.sampled_from(["env", "tier", "gpu"]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    some_of(["dev", "prod", "gold"], 2),
)
selectors = sparse({"matchLabels": labels, "matchExpressions": st.lists(expressions, max_size=1)})
taints = st.lists(
    st.fixed_dictionaries({"key": st.sampled_from(["a", "b"])}, optional={"value": st.sampled_from(["", "x", "y"])}),
    max_size=2,
)
conditions = st.builds(
    lambda ready, backup: [
        a_condition("GardenletReady", ready),
        *([a_condition("BackupBucketsReady", backup)] if backup else []),
    ],
    st.sampled_from(["True"] * 7 + ["Unknown"]),
    st.sampled_from(["", "True", "False"]),
)


# Built once: a strategy that is built in the midst of drawing is built, and validated, for each example anew.
_providers = st.sampled_from(PROVIDERS)
_regions = st.sampled_from(REGIONS)
_ranges = st.sampled_from(RANGES)
_one_in_twelve = st.integers(0, 11).map(lambda number: number == 7)
_seed_zones = some_of(ZONES, 4)
_seed_networks = few(dict.fromkeys(("nodes", "pods", "services"), _ranges))
_shoot_defaults = sparse({"shootDefaults": sparse(dict.fromkeys(("pods", "services"), _ranges))})
_visible = st.sampled_from([True] * 7 + [False])
_zone_selection = few({"zoneSelection": st.sampled_from([{"mode": "Enforce"}, {"mode": "Prefer"}, {}])})
_restrictions = some_of(["eu-only", "us-only"], 2)
_seed_taints = st.one_of(st.just([]), st.just([]), taints)
_seed_domains = some_of(DOMAINS, 2)
_backups = st.sampled_from([{}, {}, {}, {"backup": {"provider": "aws"}}])
_allocatable = sparse({"shoots": st.sampled_from(["0", "1", "2", "1500m", "1k", 3, 4])})
_seed_operations = st.sampled_from([{"lastOperation": {"type": "Reconcile"}}] * 5 + [{}])
_stops = st.sampled_from(["true", "yes"])


@st.composite
def seeds(draw: st.DrawFn, name: str) -> Document:
    seed: Document = {
        "kind": "Seed",
        "metadata": {"name": name, "labels": draw(labels)},
        "spec": {
            "provider": {"type": draw(_providers), "region": draw(_regions), "zones": draw(_seed_zones)},
            "networks": draw(_seed_networks) | draw(_shoot_defaults),
            "settings": {"scheduling": {"visible": draw(_visible)}} | draw(_zone_selection),
            "accessRestrictions": [{"name": name} for name in draw(_restrictions)],
            "taints": draw(_seed_taints),
            "dns": {"defaults": [{"domain": domain} for domain in draw(_seed_domains)]},
        }
        | draw(_backups),
        "status": {"conditions": draw(conditions), "allocatable": draw(_allocatable)} | draw(_seed_operations),
    }
    if draw(_one_in_twelve):
        seed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if draw(_one_in_twelve):
        seed["metadata"]["annotations"] = {"shoot.gardener.cloud/emergency-stop-reconciliations": draw(_stops)}
    return own(seed)


_availability = st.sampled_from([{"failureTolerance": {"type": "zone"}}, {"failureTolerance": {"type": "node"}}])
_shoot_fields = {
    "purpose": st.sampled_from(["testing", "evaluation"]),
    "networking": sparse(
        {name: st.sampled_from([*RANGES, "foo"]) for name in ("nodes", "pods", "services")}
        | {"ipFamilies": st.sampled_from([["IPv4"], ["IPv6"], ["IPv4", "IPv6"]])}
    ),
    "seedSelector": selectors,
    "controlPlane": sparse({"zones": some_of(ZONES, 1), "highAvailability": _availability}),
    "tolerations": taints,
    "accessRestrictions": st.lists(st.sampled_from([{"name": "eu-only"}, {"name": "us-only"}]), max_size=2),
    "schedulerName": st.sampled_from(["default-scheduler"] * 9 + ["mine"]),
}
_workers = st.sampled_from([[], [{"name": "w"}], [{"name": "w", "zones": ["a"]}, {"name": "v", "zones": ["b"]}]])
_references = st.sampled_from(
    [{"cloudProfileName": "cp"}] * 5
    + [
        {"cloudProfile": {"name": "cp", "kind": "CloudProfile"}},
        {"cloudProfile": {"name": "own", "kind": "NamespacedCloudProfile"}},
        {"cloudProfileName": "missing"},
    ]
)
_namespaces = st.sampled_from(["garden-dev"] * 11 + ["garden-none"])
_booleans = st.booleans()


@functools.cache
def _shoot_spec(name: str) -> st.SearchStrategy[Document]:
    domains = [f"{name}.dev.example.com", "x.dev.example.com", f"{name}.garden.example.com", "a.b", "localhost"]
    return few({**_shoot_fields, "dns": sparse({"domain": st.sampled_from(domains)})})


@st.composite
def shoots(draw: st.DrawFn, number: int) -> Document:
    name = f"new-{number}"
    spec = draw(_shoot_spec(name))
    unchecked = [one for one in spec.get("tolerations") or [] if draw(_booleans)]
    shoot: Document = {
        "kind": "Shoot",
        "metadata": {"name": name, "namespace": draw(_namespaces)}
        | ({"annotations": {UNCHECKED_TOLERATIONS: json.dumps(unchecked)}} if unchecked else {}),
        "spec": {
            **spec,
            **draw(_references),
            "region": draw(_regions),
            "provider": {"type": draw(_providers), "workers": draw(_workers)},
        },
        **draw(few({"status": st.sampled_from([{"seedName": seed} for seed in NAMES])})),
    }
    return own(shoot)


profiles = few({"seedSelector": st.one_of(selectors, sparse({"providerTypes": some_of([*PROVIDERS, "*"], 2)}))})
distances = st.dictionaries(
    st.sampled_from(REGIONS),
    st.one_of(
        st.dictionaries(st.sampled_from(REGIONS), st.integers(-1, 3)).map(json.dumps),
        st.sampled_from(["", "- a", "x: 1.5", "a: [", "a: {b: 1}"]),
    ),
)


_config_namespaces = st.sampled_from(["garden", "garden", "default"])
_purposes = st.sampled_from(["region-config"] * 3 + ["other"])
_cloudprofiles = st.sampled_from(["cp", "x, cp ,own", "own"])


@st.composite
def region_configmaps(draw: st.DrawFn, name: str) -> Document:
    return {
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": draw(_config_namespaces),
            "labels": {"scheduling.gardener.cloud/purpose": draw(_purposes)},
            "annotations": {"scheduling.gardener.cloud/cloudprofiles": draw(_cloudprofiles)},
        },
        "data": draw(distances),
    }


_seed_names = st.permutations(NAMES)
_numbers_of_seeds = st.integers(0, len(NAMES))
_project_tolerations = few({"whitelist": taints, "defaults": taints})
_config_names = some_of(["regions-a", "regions-b"], 2)
_placed = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from([None, *NAMES])), max_size=4)
_numbers_of_shoots = st.integers(1, 5)
_seeds = {name: seeds(name) for name in NAMES}
_configmaps = {name: region_configmaps(name) for name in ("regions-a", "regions-b")}
_shoots = [shoots(number) for number in range(5)]


@st.composite
def landscapes(draw: st.DrawFn) -> list[Document]:
    documents: list[Document] = [draw(_seeds[name]) for name in draw(_seed_names)[: draw(_numbers_of_seeds)]]
    documents += [
        {"kind": "CloudProfile", "metadata": {"name": "cp"}, "spec": draw(profiles)},
        {
            "kind": "NamespacedCloudProfile",
            "metadata": {"name": "own", "namespace": "garden-dev"},
            "status": {"cloudProfileSpec": draw(profiles)},
        },
        {
            "kind": "Project",
            "metadata": {"name": "dev"},
            "spec": {"namespace": "garden-dev", "tolerations": draw(_project_tolerations)},
        },
    ]
    documents += [draw(_configmaps[name]) for name in draw(_config_names)]
    documents += [
        {
            "kind": "Shoot",
            "metadata": {"name": f"old-{number}", "namespace": "garden-dev"},
            "spec": {"seedName": wanted, "provider": {"type": "aws"}},
            "status": {"seedName": actual} if actual else {},
        }
        for number, (wanted, actual) in enumerate(draw(_placed))
    ]
    documents += [draw(each) for each in _shoots[: draw(_numbers_of_shoots)]]
    return draw(st.permutations(documents))


strategy_names = st.sampled_from(["SameRegion", "MinimalDistance"])
