"""Hypothesis strategies for small landscapes in which most things happen: seeds, profiles, distances, shoots."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# Strategies of lambdas have no types to speak of.

import json
from typing import Any

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


@st.composite
def few(draw: st.DrawFn, fields: dict[str, st.SearchStrategy[Any]]) -> Document:
    """A mapping with at most two of the fields: with all of them at once nothing would ever fit."""
    return {name: draw(fields[name]) for name in draw(some_of(list(fields), 2))}


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


@st.composite
def seeds(draw: st.DrawFn, name: str) -> Document:
    seed: Document = {
        "kind": "Seed",
        "metadata": {"name": name, "labels": draw(labels)},
        "spec": {
            "provider": {
                "type": draw(st.sampled_from(PROVIDERS)),
                "region": draw(st.sampled_from(REGIONS)),
                "zones": draw(some_of(ZONES, 4)),
            },
            "networks": draw(few({name: st.sampled_from(RANGES) for name in ("nodes", "pods", "services")}))
            | draw(sparse({"shootDefaults": sparse({name: st.sampled_from(RANGES) for name in ("pods", "services")})})),
            "settings": {"scheduling": {"visible": draw(st.sampled_from([True] * 7 + [False]))}}
            | draw(few({"zoneSelection": st.sampled_from([{"mode": "Enforce"}, {"mode": "Prefer"}, {}])})),
            "accessRestrictions": [{"name": name} for name in draw(some_of(["eu-only", "us-only"], 2))],
            "taints": draw(st.one_of(st.just([]), st.just([]), taints)),
            "dns": {"defaults": [{"domain": domain} for domain in draw(some_of(DOMAINS, 2))]},
        }
        | draw(st.sampled_from([{}, {}, {}, {"backup": {"provider": "aws"}}])),
        "status": {
            "conditions": draw(conditions),
            "allocatable": draw(sparse({"shoots": st.sampled_from(["0", "1", "2", "1500m", "1k", 3, 4])})),
        }
        | draw(st.sampled_from([{"lastOperation": {"type": "Reconcile"}}] * 5 + [{}])),
    }
    if draw(st.integers(0, 11)) == 7:
        seed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if draw(st.integers(0, 11)) == 7:
        seed["metadata"]["annotations"] = {
            "shoot.gardener.cloud/emergency-stop-reconciliations": draw(st.sampled_from(["true", "yes"]))
        }
    return seed


@st.composite
def shoots(draw: st.DrawFn, number: int) -> Document:
    name = f"new-{number}"
    spec = draw(
        few(
            {
                "purpose": st.sampled_from(["testing", "evaluation"]),
                "networking": sparse(
                    {name: st.sampled_from([*RANGES, "foo"]) for name in ("nodes", "pods", "services")}
                    | {"ipFamilies": st.sampled_from([["IPv4"], ["IPv6"], ["IPv4", "IPv6"]])}
                ),
                "seedSelector": selectors,
                "controlPlane": sparse(
                    {
                        "zones": some_of(ZONES, 1),
                        "highAvailability": st.sampled_from(
                            [{"failureTolerance": {"type": "zone"}}, {"failureTolerance": {"type": "node"}}]
                        ),
                    }
                ),
                "tolerations": taints,
                "accessRestrictions": st.lists(st.sampled_from([{"name": "eu-only"}, {"name": "us-only"}]), max_size=2),
                "dns": sparse(
                    {
                        "domain": st.sampled_from(
                            [
                                f"{name}.dev.example.com",
                                "x.dev.example.com",
                                f"{name}.garden.example.com",
                                "a.b",
                                "localhost",
                            ]
                        )
                    }
                ),
                "schedulerName": st.sampled_from(["default-scheduler"] * 9 + ["mine"]),
            }
        )
    )
    workers = draw(
        st.sampled_from([[], [{"name": "w"}], [{"name": "w", "zones": ["a"]}, {"name": "v", "zones": ["b"]}]])
    )
    profile = draw(
        st.sampled_from(
            [
                {"cloudProfileName": "cp"},
                {"cloudProfileName": "cp"},
                {"cloudProfileName": "cp"},
                {"cloudProfileName": "cp"},
                {"cloudProfileName": "cp"},
                {"cloudProfile": {"name": "cp", "kind": "CloudProfile"}},
                {"cloudProfile": {"name": "own", "kind": "NamespacedCloudProfile"}},
                {"cloudProfileName": "missing"},
            ]
        )
    )
    unchecked = [one for one in spec.get("tolerations") or [] if draw(st.booleans())]
    return {
        "kind": "Shoot",
        "metadata": {"name": name, "namespace": draw(st.sampled_from(["garden-dev"] * 11 + ["garden-none"]))}
        | ({"annotations": {UNCHECKED_TOLERATIONS: json.dumps(unchecked)}} if unchecked else {}),
        "spec": {
            **spec,
            **profile,
            "region": draw(st.sampled_from(REGIONS)),
            "provider": {"type": draw(st.sampled_from(PROVIDERS)), "workers": workers},
        },
        **draw(few({"status": st.sampled_from([{"seedName": seed} for seed in NAMES])})),
    }


profiles = few({"seedSelector": st.one_of(selectors, sparse({"providerTypes": some_of([*PROVIDERS, "*"], 2)}))})
distances = st.dictionaries(
    st.sampled_from(REGIONS),
    st.one_of(
        st.dictionaries(st.sampled_from(REGIONS), st.integers(-1, 3)).map(json.dumps),
        st.sampled_from(["", "- a", "x: 1.5", "a: [", "a: {b: 1}"]),
    ),
)


@st.composite
def region_configmaps(draw: st.DrawFn, name: str) -> Document:
    return {
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": draw(st.sampled_from(["garden", "garden", "default"])),
            "labels": {"scheduling.gardener.cloud/purpose": draw(st.sampled_from(["region-config"] * 3 + ["other"]))},
            "annotations": {
                "scheduling.gardener.cloud/cloudprofiles": draw(st.sampled_from(["cp", "x, cp ,own", "own"]))
            },
        },
        "data": draw(distances),
    }


@st.composite
def landscapes(draw: st.DrawFn) -> list[Document]:
    documents: list[Document] = [draw(seeds(name)) for name in draw(st.permutations(NAMES))[: draw(st.integers(0, 8))]]
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
            "spec": {"namespace": "garden-dev", "tolerations": draw(few({"whitelist": taints, "defaults": taints}))},
        },
    ]
    documents += [draw(region_configmaps(name)) for name in draw(some_of(["regions-a", "regions-b"], 2))]
    documents += [
        {
            "kind": "Shoot",
            "metadata": {"name": f"old-{number}", "namespace": "garden-dev"},
            "spec": {"seedName": wanted, "provider": {"type": "aws"}},
            "status": {"seedName": actual} if actual else {},
        }
        for number, (wanted, actual) in enumerate(
            draw(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from([None, *NAMES])), max_size=4))
        )
    ]
    documents += [draw(shoots(number)) for number in range(draw(st.integers(1, 5)))]
    return draw(st.permutations(documents))


strategy_names = st.sampled_from(["SameRegion", "MinimalDistance"])
