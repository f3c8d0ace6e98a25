"""One landscape, one shoot, one thing that is different: what each rule says about it."""

from typing import Any

import pytest

from gardenbus.cli.simulate.scheduling import simulate, snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.garden.tolerations import UNCHECKED_TOLERATIONS
from gardenbus.scheduler.domain.explain.explanation import explain
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.cache import KINDS
from gardenbus.scheduling.equivalence_classes import request_of
from gardenbus.scheduling.filters.table import CHECKS, FILTERS, STRATEGY
from gardenbus.scheduling.results import Assignment, SchedulingResult, Unschedulable
from tests.support.builders import (
    a_cloudprofile,
    a_condition,
    a_namespaced_cloudprofile,
    a_project,
    a_region_configmap,
    a_seed,
    a_shoot,
    merged,
)

EMERGENCY_STOP = "shoot.gardener.cloud/emergency-stop-reconciliations"
EXAMPLE_COM = {"defaults": [{"domain": "example.com"}]}
TWO_ZONES = {"provider": {"zones": ["eu-west-1b", "eu-west-1c"]}}


def decided(
    shoot: Document, *documents: Document, strategy: str = "SameRegion", project: bool = True
) -> SchedulingResult:
    others = list(documents)
    if project:
        others.append(a_project())
    if not any(document["kind"] == "CloudProfile" for document in documents):
        others.append(a_cloudprofile())
    return decide(request_of(Shoot.from_document(shoot)), snapshot_of(others, strategy))


def seed_of(outcome: SchedulingResult) -> str:
    assert isinstance(outcome, Assignment), outcome
    return outcome.seed


def result_of(outcome: SchedulingResult) -> Unschedulable:
    assert isinstance(outcome, Unschedulable), outcome
    return outcome


def test_a_shoot_gets_the_seed_that_fits() -> None:
    assert seed_of(decided(a_shoot(), a_seed())) == "aws-eu1"


def test_the_least_used_seed_wins_and_the_smaller_name_among_equals() -> None:
    seeds = [a_seed("c"), a_seed("b"), a_seed("a")]
    placements = simulate([*seeds, a_cloudprofile(), a_project(), *(a_shoot(f"s{n}") for n in range(4))])
    assert [placement.seed for placement in placements] == ["a", "b", "c", "a"]


@pytest.mark.parametrize(
    ("rule", "shoot", "seed"),
    [
        ("usable", {}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        ("usable", {}, {"metadata": {"annotations": {REMOVAL_ANNOTATION: "garden/aws"}}}),
        ("usable", {}, {"spec": {"settings": {"scheduling": {"visible": False}}}}),
        ("usable", {}, {"status": {"conditions": [a_condition("GardenletReady", "Unknown")]}}),
        ("usable", {}, {"spec": {"backup": {"provider": "aws"}}}),
        ("usable", {}, {"status": {"allocatable": {"shoots": "many"}}}),
        ("usable", {}, {"spec": {"provider": {"zones": "a"}}}),
        ("shoot-selector", {"seedSelector": {"matchLabels": {"env": "prod"}}}, {}),
        ("shoot-selector", {"seedSelector": {"matchExpressions": [{"key": "env", "operator": "In"}]}}, {}),
        ("provider", {"provider": {"type": "gcp"}}, {}),
        (
            "zonal-control-plane",
            {"controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}}},
            {"spec": TWO_ZONES},
        ),
        ("zones", {"controlPlane": {"zones": ["eu-west-1a", "eu-west-1d"]}}, {}),
        ("zones", {}, {"spec": {**TWO_ZONES, "settings": {"zoneSelection": {"mode": "Enforce"}}}}),
        ("access-restrictions", {"accessRestrictions": [{"name": "eu-access-only"}]}, {}),
        ("dns-domain", {"dns": {"domain": "other.dev.example.com"}}, {"spec": {"dns": EXAMPLE_COM}}),
        ("emergency-stop", {}, {"metadata": {"annotations": {EMERGENCY_STOP: "true"}}}),
        ("networks", {"networking": {"pods": "10.241.128.0/20"}}, {}),
        ("networks", {"networking": {"nodes": "242.0.0.0/16"}}, {}),
        ("networks", {"networking": {"nodes": "foo"}}, {}),
        ("taints", {}, {"spec": {"taints": [{"key": "a"}]}}),
        ("capacity", {}, {"status": {"allocatable": {"shoots": "0"}}}),
        ("strategy", {"region": "eu-central-1"}, {}),
    ],
)
def test_the_rule_refuses_and_says_so(rule: str, shoot: Document, seed: Document) -> None:
    outcome = result_of(decided(a_shoot(spec=shoot), a_seed(**seed)))
    assert outcome.rule == rule
    assert outcome.message
    assert dict(outcome.rejected) == {rule: 1}


@pytest.mark.parametrize(
    ("shoot", "seed"),
    [
        ({}, {"metadata": {"annotations": {EMERGENCY_STOP: "True"}}}),
        ({}, {"status": {"conditions": [a_condition("GardenletReady"), a_condition("ExtensionsReady", "False")]}}),
        ({}, {"status": {"conditions": [a_condition("GardenletReady"), a_condition("Bootstrapped", "False")]}}),
        ({}, {"spec": {"settings": {"shootDNS": {"enabled": False}}}}),
        ({"seedSelector": {}}, {}),
        ({"seedSelector": {"providerTypes": ["gcp"]}}, {}),
        ({"networking": None}, {"spec": {"networks": {"pods": "10.0.0.0/8"}}}),
        ({"networking": {"nodes": None, "pods": None, "services": None}}, {}),
        ({}, {"spec": {**TWO_ZONES, "settings": {"zoneSelection": {"mode": "Prefer"}}}}),
        ({"tolerations": [{"key": "a"}]}, {"spec": {"taints": [{"key": "a"}]}}),
        ({"tolerations": [{"key": "a", "value": "x"}]}, {"spec": {"taints": [{"key": "a"}]}}),
        ({"dns": {"domain": "shop.my-company.org"}}, {"spec": {"dns": EXAMPLE_COM}}),
        ({"dns": {"domain": "apollo.dev.example.com"}}, {"spec": {"dns": EXAMPLE_COM}}),
        ({"accessRestrictions": [{"name": "eu"}]}, {"spec": {"accessRestrictions": [{"name": "eu"}, {"name": "us"}]}}),
    ],
)
def test_the_seed_will_do(shoot: Document, seed: Document) -> None:
    assert seed_of(decided(a_shoot(spec=shoot), a_seed(**seed))) == "aws-eu1"


@pytest.mark.parametrize(
    ("tolerations", "taints", "tolerated"),
    [
        ([], [], True),
        ([{"key": "a"}], [{"key": "a", "value": "x"}], False),
        ([{"key": "a"}], [{"key": "a", "value": ""}], True),
        ([{"key": "a", "value": "x"}], [{"key": "a", "value": "x"}], True),
        ([{"key": "a", "value": "x"}, {"key": "a", "value": "y"}], [{"key": "a", "value": "x"}], False),
        ([{"key": "a", "value": "x"}], [{"key": "a"}, {"key": "a", "value": "x"}], False),
        ([{"key": "a"}, {"key": "b"}], [{"key": "a"}, {"key": "b"}], True),
        ([{"key": "a"}, {"key": "b"}], [{"key": "c"}], False),
    ],
)
def test_taints_are_tolerated_by_key_and_value(tolerations: list[Any], taints: list[Any], tolerated: bool) -> None:
    outcome = decided(a_shoot(spec={"tolerations": tolerations}), a_seed(spec={"taints": taints}))
    assert isinstance(outcome, Assignment) is tolerated


def test_a_toleration_that_nobody_checked_counts_only_if_the_project_allows_it() -> None:
    unchecked = {"annotations": {UNCHECKED_TOLERATIONS: '[{"key":"a"}]'}}
    shoot = a_shoot(metadata=unchecked, spec={"tolerations": [{"key": "a"}, {"key": "b"}]})
    protected = a_seed(spec={"taints": [{"key": "a"}]})
    unschedulable = result_of(decided(shoot, protected))
    assert unschedulable.rule == "taints"
    assert "project dev does not whitelist" in unschedulable.message
    assert seed_of(decided(shoot, a_seed(spec={"taints": [{"key": "b"}]}))) == "aws-eu1"
    for field in ("whitelist", "defaults"):
        project = a_project(spec={"tolerations": {field: [{"key": "a"}]}})
        assert seed_of(decided(shoot, protected, project, project=False)) == "aws-eu1"


def test_a_preferring_seed_steps_back_for_any_other_that_survives() -> None:
    prefers: Document = {"spec": {**TWO_ZONES, "settings": {"zoneSelection": {"mode": "Prefer"}}}}
    assert seed_of(decided(a_shoot(), a_seed("a", **prefers), a_seed("b", spec=TWO_ZONES))) == "b"


def test_provider_types_of_the_profile_cross_providers_only_with_minimal_distance() -> None:
    profile = a_cloudprofile(spec={"seedSelector": {"providerTypes": ["*"]}})
    seed = a_seed(spec={"provider": {"type": "gcp"}})
    assert result_of(decided(a_shoot(), seed, profile)).rule == "strategy"
    assert seed_of(decided(a_shoot(), seed, profile, strategy="MinimalDistance")) == "aws-eu1"


def test_a_profile_selects_seeds_by_label() -> None:
    profile = a_cloudprofile(spec={"seedSelector": {"matchLabels": {"env": "prod"}}})
    seeds = [a_seed("a"), a_seed("b", metadata={"labels": {"env": "prod"}})]
    assert seed_of(decided(a_shoot(), *seeds, profile)) == "b"
    assert result_of(decided(a_shoot(), seeds[0], profile)).rule == "cloudprofile-selector"


def test_a_namespaced_profile_counts_as_merged_in_its_status() -> None:
    own = a_namespaced_cloudprofile(status={"cloudProfileSpec": {"seedSelector": {"matchLabels": {"env": "prod"}}}})
    shoot = a_shoot(spec={"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "own"}})
    assert result_of(decided(shoot, a_seed(), own)).rule == "cloudprofile-selector"
    assert seed_of(decided(shoot, a_seed(metadata={"labels": {"env": "prod"}}), own)) == "aws-eu1"
    elsewhere = merged(shoot, {"metadata": {"namespace": "garden-core"}})
    assert result_of(decided(elsewhere, a_seed(), own)).rule == "cloudprofile"


def test_a_shoot_without_profile_or_project_is_refused() -> None:
    assert result_of(decided(a_shoot(spec={"cloudProfile": None}), a_seed())).rule == "cloudprofile"
    assert result_of(decided(a_shoot(), a_seed(), project=False)).rule == "project"
    assert seed_of(decided(a_shoot(spec={"cloudProfile": None, "cloudProfileName": "aws"}), a_seed())) == "aws-eu1"


def test_a_testing_shoot_goes_anywhere_within_its_provider() -> None:
    shoot = a_shoot(spec={"purpose": "testing"})
    assert seed_of(decided(shoot, a_seed(spec={"provider": {"region": "ap-south-1"}}))) == "aws-eu1"
    profile = a_cloudprofile(spec={"seedSelector": {"providerTypes": ["gcp"]}})
    gcp = a_seed(spec={"provider": {"type": "gcp"}})
    assert result_of(decided(shoot, gcp, profile, strategy="MinimalDistance")).rule == "strategy"


class TestNetworks:
    DEFAULTS = {"networks": {"shootDefaults": {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"}}}

    def open_shoot(self, **networking: Any) -> Document:
        return a_shoot(spec={"networking": {"pods": None, "services": None, **networking}})

    def test_an_open_range_is_taken_from_the_seeds_defaults_and_checked(self) -> None:
        overlapping = a_seed(spec={"networks": {"shootDefaults": {"pods": "10.241.0.0/17"}}})
        assert result_of(decided(self.open_shoot(), overlapping)).rule == "networks"
        assert seed_of(decided(self.open_shoot(), a_seed(spec=self.DEFAULTS))) == "aws-eu1"

    def test_a_default_of_another_family_is_not_taken(self) -> None:
        overlapping = a_seed(spec={"networks": {"shootDefaults": {"pods": "10.241.0.0/17"}}})
        shoot = self.open_shoot(nodes=None, ipFamilies=["IPv6"])
        assert seed_of(decided(shoot, overlapping)) == "aws-eu1"

    def test_a_workerless_shoot_takes_no_default_for_pods(self) -> None:
        overlapping = a_seed(spec={"networks": {"shootDefaults": {"pods": "10.241.0.0/17"}}})
        shoot = merged(self.open_shoot(), {"spec": {"provider": {"workers": []}}})
        assert seed_of(decided(shoot, overlapping)) == "aws-eu1"

    def test_a_malformed_default_never_matches(self) -> None:
        malformed = a_seed(spec={"networks": {"shootDefaults": {"pods": "x"}}})
        assert result_of(decided(self.open_shoot(), malformed)).rule == "networks"

    def test_ranges_in_use_are_checked_like_stated_ones(self) -> None:
        shoot = a_shoot(status={"networking": {"pods": ["10.241.0.0/20"], "services": ["100.64.0.0/13"]}})
        assert "overlap" in result_of(decided(shoot, a_seed())).message
        lacking = a_shoot(status={"networking": {"pods": ["100.96.0.0/11"]}})
        assert "services" in result_of(decided(lacking, a_seed())).message


class TestMinimalDistance:
    def seeds(self, *regions: str) -> list[Document]:
        return [a_seed(region, spec={"provider": {"region": region}}) for region in regions]

    def chosen(self, *regions: str, configmaps: tuple[Document, ...] = (), **spec: Any) -> SchedulingResult:
        return decided(a_shoot(spec=spec), *self.seeds(*regions), *configmaps, strategy="MinimalDistance")

    def test_the_configured_distance_decides(self) -> None:
        outcome = self.chosen("eu-central-1", "us-east-1", configmaps=(a_region_configmap(),))
        assert (seed_of(outcome), outcome.distance) == ("eu-central-1", 50)  # type: ignore[union-attr]

    def test_its_own_region_is_at_no_distance_unless_it_says_otherwise(self) -> None:
        regions = ("eu-central-1", "eu-west-1")
        assert seed_of(self.chosen(*regions, configmaps=(a_region_configmap(),))) == "eu-west-1"
        farther = a_region_configmap(data={"eu-west-1": "eu-west-1: 60\neu-central-1: 50"})
        assert seed_of(self.chosen(*regions, configmaps=(farther,))) == "eu-central-1"

    def test_names_decide_when_no_seed_is_listed(self) -> None:
        listed = a_region_configmap(data={"eu-west-1": "mars: 1"})
        for configmaps in ((), (listed,), (a_region_configmap(data={}),)):
            assert seed_of(self.chosen("eu-west-3", "us-east-1", configmaps=configmaps)) == "eu-west-3"

    def test_a_listed_seed_that_is_full_leaves_the_place_to_the_next_listed_one(self) -> None:
        full = merged(self.seeds("eu-central-1")[0], {"status": {"allocatable": {"shoots": "0"}}})
        others = [*self.seeds("us-east-1", "eu-west-2"), a_region_configmap()]
        outcome = decided(a_shoot(), full, *others, strategy="MinimalDistance")
        assert seed_of(outcome) == "us-east-1"

    def test_the_first_region_configmap_by_name_counts(self) -> None:
        first = a_region_configmap("a", "x, aws", data={"eu-west-1": "us-east-1: 1\neu-central-1: 2"})
        other = a_region_configmap("b", "aws", data={"eu-west-1": "us-east-1: 2\neu-central-1: 1"})
        assert seed_of(self.chosen("eu-central-1", "us-east-1", configmaps=(other, first))) == "us-east-1"

    def test_other_region_configmaps_are_told_off(self) -> None:
        documents = [
            a_region_configmap("a", "x, aws"),
            a_region_configmap("b", "aws"),
            a_region_configmap("c", "other"),
        ]
        duplicates = snapshot_of(documents).landscape.duplicate_region_configmaps()
        assert list(duplicates) == ["b"]
        assert "'a'" in duplicates["b"]

    @pytest.mark.parametrize(
        "text",
        ["- a", "x: 1.5", "x: '7'", "\tx: 1", "x: {y: 1}", "x: [1]", "x: true", "a: b: c", "# nothing", "x: 1:30"],
    )
    def test_a_malformed_region_configmap_is_an_error(self, text: str) -> None:
        outcome = result_of(self.chosen("eu-west-1", configmaps=(a_region_configmap(data={"eu-west-1": text}),)))
        assert outcome.rule == "strategy"
        assert "garden/regions-aws" in outcome.message

    @pytest.mark.parametrize("text", [f"us-east-1: {number}" for number in ("1.0", "1e0", "", "0x1", "-5")])
    def test_whatever_go_reads_as_a_whole_number_will_do(self, text: str) -> None:
        outcome = self.chosen("us-east-1", "eu-west-3", configmaps=(a_region_configmap(data={"eu-west-1": text}),))
        assert seed_of(outcome) == "us-east-1"

    def test_a_namespaced_profile_looks_its_distances_up_by_its_own_name(self) -> None:
        distances = {"eu-west-1": "us-east-1: 1"}
        outcome = decided(
            a_shoot(spec={"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "own"}}),
            *self.seeds("eu-west-3", "us-east-1"),
            a_namespaced_cloudprofile(),
            a_region_configmap("a", "aws", data={"eu-west-1": "eu-west-3: 1"}),
            a_region_configmap("b", "own", data=distances),
            strategy="MinimalDistance",
        )
        assert seed_of(outcome) == "us-east-1"

    def test_farther_than_a_thousand_is_no_candidate(self) -> None:
        assert result_of(self.chosen("x" * 520)).rule == "strategy"


def test_an_explanation_ranks_what_fits_and_rejects_the_rest() -> None:
    documents = [
        a_seed("near", shoots="5"),
        a_seed("full", shoots="0"),
        a_seed("far", spec={"provider": {"region": "us-east-1"}}),
        a_seed("gone", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        a_seed("also-near"),
        a_cloudprofile(),
        a_project(),
        a_shoot("old", spec={"seedName": "also-near"}),
    ]
    explanation = explain(request_of(Shoot.from_document(a_shoot())), snapshot_of(documents))
    assert [(ranked.seed, ranked.place, ranked.usage) for ranked in explanation.ranking] == [
        ("near", 1, 0),
        ("also-near", 2, 1),
    ]
    assert [(rejection.seed, rejection.rule) for rejection in explanation.rejections] == [
        ("far", "strategy"),
        ("full", "capacity"),
        ("gone", "usable"),
    ]
    assert [(step.rule, step.rejected, step.left) for step in explanation.funnel] == [
        ("usable", 1, 4),
        ("capacity", 1, 3),
        ("strategy", 1, 2),
    ]


def test_many_seeds_are_grouped_in_the_sentence() -> None:
    seeds = [a_seed(f"s{number:03}", shoots="0") for number in range(200)]
    message = result_of(decided(a_shoot(), *seeds)).message
    assert len(message) < 300
    assert "200 seeds" in message
    few = result_of(decided(a_shoot(), *seeds[:2])).message
    assert "s000 => " in few
    assert "s001 => " in few


def test_the_cache_follows_every_kind_whose_changes_may_unblock_a_shoot() -> None:
    events = {event for row in (*FILTERS, *CHECKS, STRATEGY) for event in row.unblocked_by}
    assert events == {*KINDS, "usage"}
