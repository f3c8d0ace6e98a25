"""The scheduler gives the same answer as one written straight from the rules, on every generated landscape."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# Strategies of lambdas have no types to speak of.

import copy
import json
import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.common.resources.document import Document
from gardenbus.common.resources.seeds import may_gain
from gardenbus.common.resources.shoots import Shoot
from gardenbus.common.resources.tolerations import UNCHECKED_TOLERATIONS
from gardenbus.scheduling.outcome import Placement, Refusal
from gardenbus.scheduling.placement import decide, explain, free_places
from gardenbus.scheduling.request import descriptor, request_from_descriptor, request_of, waiting_class
from gardenbus.scheduling.simulate import simulate, snapshot_of
from tests.support import naive_scheduler
from tests.support.builders import a_condition
from tests.support.golden import manifests, required_expectations

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
    documents += [
        {
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": draw(st.sampled_from(["garden", "garden", "default"])),
                "labels": {
                    "scheduling.gardener.cloud/purpose": draw(st.sampled_from(["region-config"] * 3 + ["other"]))
                },
                "annotations": {
                    "scheduling.gardener.cloud/cloudprofiles": draw(st.sampled_from(["cp", "x, cp ,own", "own"]))
                },
            },
            "data": draw(distances),
        }
        for name in draw(some_of(["regions-a", "regions-b"], 2))
    ]
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
EXAMPLES = int(os.environ.get("GARDENBUS_EXAMPLES", "300"))


@settings(max_examples=EXAMPLES, deadline=None)
@given(landscapes(), strategy_names)
def test_the_scheduler_agrees_with_the_naive_one(documents: list[Document], strategy: str) -> None:
    expected = naive_scheduler.schedule_all(copy.deepcopy(documents), strategy)
    assert {placement.shoot: placement.seed for placement in simulate(documents, strategy)} == expected


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(landscapes(), strategy_names)
def test_an_explanation_accounts_for_every_seed_and_agrees_with_the_decision(
    documents: list[Document], strategy: str
) -> None:
    snapshot = snapshot_of(documents, strategy)
    for document in documents:
        if document["kind"] != "Shoot":
            continue
        request = request_of(Shoot.from_document(document))
        outcome = decide(request, snapshot)
        explanation = explain(request, snapshot)
        ranked = [ranked.seed for ranked in explanation.ranking]
        rejected = [rejection.seed for rejection in explanation.rejections]
        assert sorted(ranked + rejected) == [seed.name for seed in snapshot.landscape.seeds]
        assert sum(step.rejected for step in explanation.funnel) == len(rejected)
        assert [step.left for step in explanation.funnel][-1:] == ([len(ranked)] if rejected else [])
        assert all(rejection.detail for rejection in explanation.rejections)
        if isinstance(outcome, Placement):
            assert ranked[0] == outcome.seed
            assert free_places(request, snapshot) != 0
        else:
            assert ranked == []
            assert free_places(request, snapshot) == 0
            assert outcome.message


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(shoots(0), shoots(0))
def test_a_class_is_what_a_decision_reads_and_survives_the_store(one: Document, other: Document) -> None:
    request, another = (request_of(Shoot.from_document(document)) for document in (one, other))
    assert request_from_descriptor(descriptor(request)) == request
    assert (waiting_class(request) == waiting_class(another)) == (request == another)


@settings(max_examples=EXAMPLES, deadline=None)
@given(landscapes(), st.data(), strategy_names)
def test_no_change_of_a_seed_makes_a_shoot_fit_without_being_a_gain(
    documents: list[Document], data: st.DataObject, strategy: str
) -> None:
    name = data.draw(st.sampled_from(NAMES))
    others = [document for document in documents if (document["kind"], document["metadata"]["name"]) != ("Seed", name)]
    old, new = (data.draw(st.one_of(st.none(), seeds(name))) for _ in range(2))
    before, after = (snapshot_of([*others, *([seed] if seed else [])], strategy) for seed in (old, new))
    for document in others:
        if document["kind"] == "Shoot":
            request = request_of(Shoot.from_document(document))
            if isinstance(decide(request, before), Refusal) and isinstance(decide(request, after), Placement):
                assert may_gain(old, new)


def test_the_naive_one_is_no_straw_man() -> None:
    for expected in required_expectations():
        placements = naive_scheduler.schedule_all(manifests(expected)["items"], expected["strategy"])
        assert placements == {placement["shoot"]: placement["seed"] for placement in expected["placements"]}
