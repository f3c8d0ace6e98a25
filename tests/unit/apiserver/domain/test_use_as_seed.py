"""The annotation that makes a shoot a seed: what it asks for, and when it is refused."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gardenbus.apiserver.domain.related_objects import (
    ManagedSeedOfShootQuery,
    ObjectQuery,
    ProjectQuery,
    RelatedObjects,
    ShootsOnSeedQuery,
)
from gardenbus.apiserver.domain.use_as_seed import (
    FIELD,
    MADE_FROM,
    RequestedSeed,
    follows_annotation,
    is_made_from_annotation,
    requested_seed,
)
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.managed_seeds import seed_template_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.admissions import admit, mutate, related_queries
from tests.support.builders import a_cloudprofile, a_shoot, merged

SHOOT = ObjectKey("shoot", "garden", "child")
PROJECT = ProjectQuery("garden")
MANAGED_SEED = ObjectKey("managedseed", "garden", "child")
USE_AS_SEED = "shoot.gardener.cloud/use-as-seed"


def a_child(annotation: str | None = "true", **changes: Any) -> Document:
    annotations = {USE_AS_SEED: annotation} if annotation is not None else None
    shoot = a_shoot(
        "child",
        "garden",
        metadata={"uid": "u1", "annotations": annotations},
        spec={"dns": {"domain": "child.example.org"}, "kubernetes": {"verticalPodAutoscaler": {"enabled": True}}},
    )
    return merged(shoot, changes)


def requested(annotation: str, **changes: Any) -> RequestedSeed:
    return requested_seed(a_child(annotation, **changes))


def managed_seed_of(annotation: str, **changes: Any) -> Document:
    managed_seed = requested(annotation, **changes).managed_seed
    assert managed_seed is not None
    return managed_seed


def seed_spec_of(annotation: str) -> Mapping[str, Any]:
    return seed_template_of(managed_seed_of(annotation))["spec"]


class TestReading:
    def test_true_alone_asks_for_a_gardenlet_that_takes_250_shoots(self) -> None:
        managed_seed = managed_seed_of("true")
        gardenlet = managed_seed["spec"]["gardenlet"]
        assert managed_seed["spec"]["shoot"] == {"name": "child"}
        assert (gardenlet["bootstrap"], gardenlet["mergeWithParent"]) == ("BootstrapToken", True)
        assert gardenlet["config"]["resources"] == {"capacity": {"shoots": "250"}}
        assert seed_spec_of("true") == {"backup": {}, "settings": {"scheduling": {"visible": True}}}

    def test_it_belongs_to_its_shoot_and_says_where_it_comes_from(self) -> None:
        metadata = managed_seed_of("true")["metadata"]
        assert (metadata["name"], metadata["namespace"]) == ("child", "garden")
        assert metadata["annotations"] == {MADE_FROM: "use-as-seed"}
        (owner,) = metadata["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Shoot", "child", "u1", True)

    @pytest.mark.parametrize(
        ("setting", "path", "value"),
        [
            ("protected", ("taints",), [{"key": "seed.gardener.cloud/protected"}]),
            ("visible", ("settings", "scheduling", "visible"), True),
            ("invisible", ("settings", "scheduling", "visible"), False),
            ("disable-capacity-reservation", ("settings", "excessCapacityReservation", "enabled"), False),
            ("with-secret-ref", ("secretRef",), {"name": "seed-child", "namespace": "garden"}),
            ("minimumVolumeSize=20Gi", ("volume", "minimumSize"), "20Gi"),
            ("shootDefaults.pods=100.96.0.0/11", ("networks", "shootDefaults", "pods"), "100.96.0.0/11"),
            ("shootDefaults.services=100.64.0.0/13", ("networks", "shootDefaults", "services"), "100.64.0.0/13"),
            ("blockCIDRs=169.254.0.0/16;10.0.0.0/8", ("networks", "blockCIDRs"), ["169.254.0.0/16", "10.0.0.0/8"]),
            ("backup.provider=gcp", ("backup", "provider"), "gcp"),
            ("backup.secretRef.name=b", ("backup", "secretRef"), {"name": "b"}),
            ("backup.region=eu", ("backup", "region"), "eu"),
            ("ingress.controller.kind=nginx", ("ingress", "controller", "kind"), "nginx"),
            ("providerConfig.storage.size=20", ("provider", "providerConfig"), {"storage": {"size": 20}}),
            ('providerConfig.storage.size="20"', ("provider", "providerConfig"), {"storage": {"size": "20"}}),
            ("providerConfig.fast=true", ("provider", "providerConfig"), {"fast": True}),
            ("providerConfig.ratio=0.5", ("provider", "providerConfig"), {"ratio": 0.5}),
            ("providerConfig.odd=nan", ("provider", "providerConfig"), {"odd": "nan"}),
            (
                "ingress.controller.providerConfig.use=x",
                ("ingress", "controller"),
                {"providerConfig": {"use": "x"}},
            ),
            (
                "loadBalancerServices.annotations.example.com/kind=nlb",
                ("settings", "loadBalancerServices", "annotations"),
                {"example.com/kind": "nlb"},
            ),
        ],
    )
    def test_each_setting_has_its_place_in_the_seed(self, setting: str, path: Sequence[str], value: Any) -> None:
        found: Any = seed_spec_of(f"true, {setting}")
        for field in path:
            found = found[field]
        assert found == value
        assert requested(f"true,{setting}").warnings == ()

    def test_backup_may_be_none(self) -> None:
        assert "backup" not in seed_spec_of("true,backup.provider=none,backup.region=eu")

    def test_unprotected_and_invisible_win_with_a_warning(self) -> None:
        spec = seed_spec_of("true,unprotected,protected,visible,invisible")
        assert "taints" not in spec
        assert spec["settings"]["scheduling"]["visible"] is False
        assert len(requested("true,unprotected,protected,visible,invisible").warnings) == 2

    def test_the_gardenlet_takes_resources_gates_and_a_way_to_bootstrap(self) -> None:
        settings = "resources.capacity.shoots=100,resources.reserved.shoots=5,featureGates.A=true,featureGates.B=no"
        gardenlet = managed_seed_of(f"true,{settings},use-serviceaccount-bootstrapping")["spec"]["gardenlet"]
        assert gardenlet["bootstrap"] == "ServiceAccount"
        assert gardenlet["config"]["resources"] == {"capacity": {"shoots": "100"}, "reserved": {"shoots": "5"}}
        assert gardenlet["config"]["featureGates"] == {"A": True, "B": False}

    def test_without_gardenlet_it_is_a_template(self) -> None:
        spec = managed_seed_of("true,no-gardenlet,protected")["spec"]
        assert "gardenlet" not in spec
        assert spec["seedTemplate"]["spec"]["taints"] == [{"key": "seed.gardener.cloud/protected"}]
        assert spec["seedTemplate"]["spec"]["secretRef"]["name"] == "seed-child"

    def test_the_seed_gets_the_labels_of_the_shoot_but_not_those_of_the_system(self) -> None:
        labels = {"own": "1", "shoot.gardener.cloud/status": "healthy", "name.seed.gardener.cloud/a": "true"}
        assert seed_template_of(managed_seed_of("true", metadata={"labels": labels}))["metadata"] == {
            "labels": {"own": "1"}
        }

    @pytest.mark.parametrize("annotation", [None, "", "  ", "false", "false,protected"])
    def test_nothing_is_asked_for_without_true(self, annotation: str | None) -> None:
        assert requested_seed(a_child(annotation)) == RequestedSeed(None)

    def test_anything_else_than_true_or_false_is_warned_about(self) -> None:
        used = requested("protected")
        assert used.managed_seed is None
        assert "must begin with true" in used.warnings[0]

    @pytest.mark.parametrize(
        ("setting", "reported"),
        [
            ("apiServer.autoscaler.minReplicas=3", "managed-seed-api-server"),
            ("wonderful", "'wonderful' is ignored"),
            ("colour=red", "'colour' is ignored"),
            ("featureGates.=true", "'featureGates.' is ignored"),
            ("false", "false is ignored beside true"),
            ("disable-dns", "'disable-dns' is ignored"),
        ],
    )
    def test_what_has_no_effect_is_warned_about(self, setting: str, reported: str) -> None:
        used = requested(f"true,{setting}")
        assert used.managed_seed == managed_seed_of("true")
        assert len(used.warnings) == 1
        assert reported in used.warnings[0]
        assert used.warnings[0].startswith(FIELD)

    def test_it_counts_in_the_garden_alone(self) -> None:
        used = requested("true", metadata={"namespace": "garden-dev"})
        assert used.managed_seed is None
        assert "only shoots in the namespace garden" in used.warnings[0]

    def test_only_what_was_made_from_this_shoot_follows_it(self) -> None:
        made, by_hand = managed_seed_of("true"), merged(managed_seed_of("true"), {"metadata": {"annotations": None}})
        assert follows_annotation(made, a_child())
        assert is_made_from_annotation(made)
        assert not follows_annotation(by_hand, a_child())
        assert not follows_annotation(made, a_child(metadata={"uid": "u2"}))


PROFILE = ObjectKey("cloudprofile", "", "aws")


def facts_with(
    managed_seed: Document | None = None, managed_seeds: Document | None = None, shoots_on: Sequence[Document] = ()
) -> RelatedObjects:
    return RelatedObjects(
        objects={PROFILE: a_cloudprofile()} | ({MANAGED_SEED: managed_seed} if managed_seed is not None else {}),
        managed_seeds={SHOOT: managed_seeds} if managed_seeds is not None else {},
        shoots_on={"child": shoots_on} if shoots_on else {},
    )


def admitted(shoot: Document, related: RelatedObjects | None = None, old: Document | None = None) -> Sequence[str]:
    related = related if related is not None else facts_with()
    result = mutate(shoot, old, related, user="ann")
    validate(result.document, old)
    admit(result.document, old, related)
    return [warning for warning in result.warnings if FIELD in warning]


class TestAdmission:
    def test_a_good_annotation_passes(self) -> None:
        assert admitted(a_child("true,protected")) == []
        assert admitted(a_child("true,strange")) == [f"{FIELD}: 'strange' is ignored, it is not known here"]

    @pytest.mark.parametrize(
        ("annotation", "spec", "reported"),
        [
            ("true", {"provider": {"workers": []}, "kubernetes": {"verticalPodAutoscaler": None}}, "has no workers"),
            ("true", {"kubernetes": {"verticalPodAutoscaler": {"enabled": False}}}, "verticalPodAutoscaler"),
            ("true", {"addons": {"nginxIngress": {"enabled": True}}}, "nginxIngress"),
            ("true,shootDefaults.pods=nonsense", {}, r"seedConfig\.spec\.networks\.shootDefaults\.pods"),
            ("true,resources.capacity.shoots=many", {}, r"resources\.capacity\.shoots"),
            ("true,resources.capacity.shoots=1,resources.reserved.shoots=2", {}, "lower or equal to capacity"),
        ],
    )
    def test_what_would_refuse_the_managed_seed_refuses_the_shoot(
        self, annotation: str, spec: Document, reported: str
    ) -> None:
        with pytest.raises(InvalidResource, match=reported) as caught:
            admitted(a_child(annotation, spec=spec))
        assert {problem.field for problem in caught.value.problems} == {FIELD}

    def test_a_new_shoot_may_wait_for_its_domain_until_it_has_a_seed(self) -> None:
        admitted(a_child(spec={"dns": None}))

    def test_how_the_gardenlet_is_set_up_stays(self) -> None:
        made = managed_seed_of("true")
        with pytest.raises(InvalidResource, match=r"spec\.gardenlet: its gardenlet is started"):
            admitted(a_child("true,no-gardenlet"), facts_with(made, made), a_child())

    def test_a_managed_seed_that_somebody_made_by_hand_is_left_alone(self) -> None:
        by_hand = merged(managed_seed_of("true"), {"metadata": {"name": "other", "annotations": None}})
        assert "ManagedSeed other stands on this shoot already" in admitted(a_child(), facts_with(None, by_hand))[0]
        namesake = merged(managed_seed_of("true"), {"metadata": {"annotations": None}})
        assert "ManagedSeed child was not made from it" in admitted(a_child(), facts_with(namesake))[0]

    def test_it_can_be_taken_off_only_while_the_seed_is_empty(self) -> None:
        made = managed_seed_of("true")
        for without in (a_child(None), a_child("false")):
            queries = related_queries(without, a_child())
            of_its_seed = {ObjectQuery(MANAGED_SEED), ManagedSeedOfShootQuery(SHOOT), ShootsOnSeedQuery("child")}
            assert set(queries) == {*of_its_seed, PROJECT}
            with pytest.raises(Forbidden, match=r"shoots are on the seed child \(1\): move them"):
                admitted(without, facts_with(made, made, [a_shoot()]), a_child())
            admitted(without, facts_with(made, made), a_child())

    def test_other_changes_ask_nothing(self) -> None:
        assert list(related_queries(a_child(metadata={"annotations": {"a": "b"}}), a_child())) == [PROJECT]
        assert list(related_queries(a_child(None, spec={"purpose": "testing"}), a_child(None))) == [PROJECT]

    def test_a_shoot_that_is_being_deleted_asks_for_nothing_any_more(self) -> None:
        deleting = a_child(metadata={"deletionTimestamp": "2026-01-02T03:04:05Z"})
        assert list(related_queries(deleting, deleting)) == [PROJECT]
