"""ManagedSeeds, Seeds and shoots are admitted by each other."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.related_objects import (
    ManagedSeedOfShootQuery,
    ObjectQuery,
    ProjectQuery,
    RelatedObjects,
    SeedOfShootQuery,
    ShootsOnSeedQuery,
)
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.managed_seeds import seed_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.admissions import admit, deletion_guards, mutate, related_queries
from tests.support.admissions import uncounted_write_guards as write_guards
from tests.support.builders import a_seed, a_shoot, merged

SHOOT = ObjectKey("shoot", "garden", "child")
GARDENLET = ObjectKey("gardenlet", "garden", "child")
SEED_MANAGEMENT = "seedmanagement.gardener.cloud/v1alpha1"


def a_managed_seed(seed: Document | None = None, **changes: Any) -> Document:
    managed_seed: Document = {
        "apiVersion": SEED_MANAGEMENT,
        "kind": "ManagedSeed",
        "metadata": {"name": "child", "namespace": "garden"},
        "spec": {"shoot": {"name": "child"}, "seedTemplate": {"spec": seed or {}}},
    }
    return merged(managed_seed, changes)


def a_gardenlet() -> Document:
    metadata = {"name": "child", "namespace": "garden"}
    spec = {"deployment": {"helm": {"ociRepository": {"ref": "registry.example.org/gardenlet:v1.149.3"}}}}
    return {"apiVersion": SEED_MANAGEMENT, "kind": "Gardenlet", "metadata": metadata, "spec": spec}


def a_child(**changes: Any) -> Document:
    kubernetes = {"version": "1.34.1", "verticalPodAutoscaler": {"enabled": True}}
    spec = {"dns": {"domain": "child.example.org"}, "kubernetes": kubernetes, "seedName": "aws-eu1"}
    return merged(a_shoot("child", "garden", spec=spec, metadata={"resourceVersion": "7"}), changes)


def facts_with(
    shoot: Document | None, *shoots_on: Document, others: dict[ObjectKey, Document] | None = None
) -> RelatedObjects:
    objects = {SHOOT: shoot} if shoot is not None else {}
    return RelatedObjects(objects={**objects, **(others or {})}, shoots_on={"child": shoots_on} if shoots_on else {})


def admitted(document: Document, related: RelatedObjects, old: Document | None = None) -> Document:
    result = mutate(document, old, related, user="ann").document
    validate(result, old)
    admit(result, old, related)
    return result


def problems_of(document: Document, related: RelatedObjects, old: Document | None = None) -> dict[str, str]:
    with pytest.raises(InvalidResource) as caught:
        admitted(document, related, old)
    return {problem.field: problem.message for problem in caught.value.problems}


class TestManagedSeed:
    def test_a_shoot_that_is_not_there_is_what_is_wrong_also_when_a_configuration_names_no_version(self) -> None:
        gardenlet: Document = {"config": {"seedConfig": {"spec": {}}}}
        managed_seed = a_managed_seed(spec={"seedTemplate": None, "gardenlet": gardenlet})

        assert list(problems_of(managed_seed, facts_with(None))) == ["spec.shoot.name"]

    def test_a_good_one_is_taken_with_what_its_shoot_says(self) -> None:
        host = a_seed(spec={"dns": {"defaults": [{"domain": "example.org", "type": "local"}]}})
        related = facts_with(a_child(), others={ObjectKey("seed", "", "aws-eu1"): host})
        result = admitted(a_managed_seed(), related)

        assert seed_of(result)["spec"]["ingress"]["domain"] == "ingress.child.example.org"
        assert seed_of(result)["spec"]["dns"]["provider"] == {"type": "local"}
        assert result["metadata"]["labels"] == {"name.seed.gardener.cloud/aws-eu1": "true"}

    @pytest.mark.parametrize(
        ("shoot", "reported"),
        [
            (None, "not found: apply it first"),
            (a_child(metadata={"deletionTimestamp": "2026-01-02T03:04:05Z"}), "being deleted"),
            (a_child(spec={"dns": None}), r"spec\.dns\.domain"),
            (a_child(spec={"addons": {"nginxIngress": {"enabled": True}}}), "nginxIngress"),
            (a_child(spec={"provider": {"workers": []}}), "has no workers"),
            (a_child(spec={"kubernetes": {"verticalPodAutoscaler": {"enabled": False}}}), "verticalPodAutoscaler"),
            (a_child(spec={"kubernetes": {"verticalPodAutoscaler": None}}), "verticalPodAutoscaler"),
        ],
    )
    def test_a_shoot_that_cannot_be_a_seed_is_refused(self, shoot: Document | None, reported: str) -> None:
        with pytest.raises(InvalidResource, match=reported) as caught:
            admitted(a_managed_seed(), facts_with(shoot))
        assert {problem.field for problem in caught.value.problems} == {"spec.shoot.name"}

    @pytest.mark.parametrize(
        ("seed", "field"),
        [
            ({"ingress": {"domain": "other.example.org"}}, "ingress.domain"),
            ({"networks": {"nodes": "10.1.0.0/16"}}, "networks.nodes"),
            ({"networks": {"pods": "10.1.0.0/16"}}, "networks.pods"),
            ({"networks": {"services": "10.1.0.0/16"}}, "networks.services"),
            ({"provider": {"type": "gcp"}}, "provider.type"),
            ({"provider": {"region": "eu-west-2"}}, "provider.region"),
            ({"provider": {"zones": ["eu-west-1a", "eu-west-1z"]}}, "provider.zones"),
        ],
    )
    def test_its_seed_is_as_the_shoot_is(self, seed: Document, field: str) -> None:
        assert list(problems_of(a_managed_seed(seed), facts_with(a_child()))) == [f"spec.seedTemplate.spec.{field}"]
        in_gardenlet = a_managed_seed(
            spec={
                "seedTemplate": None,
                "gardenlet": {
                    "config": {
                        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
                        "kind": "GardenletConfiguration",
                        "seedConfig": {"spec": seed},
                    }
                },
            }
        )
        path = f"spec.gardenlet.config.seedConfig.spec.{field}"
        assert list(problems_of(in_gardenlet, facts_with(a_child()))) == [path]

    def test_what_the_shoot_does_not_have_yet_is_not_stated_for_it(self) -> None:
        shoot = a_child(spec={"networking": {"pods": None}})
        assert "spec.seedTemplate.spec.networks.pods" in problems_of(
            a_managed_seed({"networks": {"pods": "10.1.0.0/16"}}), facts_with(shoot)
        )

    def test_everything_that_is_wrong_is_said_at_once(self) -> None:
        seed = {"provider": {"type": "gcp", "region": "x"}, "networks": {"nodes": "10.1.0.0/16"}}
        assert len(problems_of(a_managed_seed(seed), facts_with(a_child(spec={"dns": None})))) == 4

    def test_a_zone_once_taken_may_stay_when_the_shoot_has_left_it(self) -> None:
        related = facts_with(a_child())
        old = a_managed_seed({"provider": {"zones": ["eu-west-1a", "eu-west-1x"]}})
        same = merged(old, {"spec": {"seedTemplate": {"spec": {"settings": {"scheduling": {"visible": False}}}}}})
        admitted(same, related, old)
        more = a_managed_seed({"provider": {"zones": ["eu-west-1a", "eu-west-1x", "eu-west-1y"]}})
        assert "eu-west-1y" in problems_of(more, related, old)["spec.seedTemplate.spec.provider.zones"]

    def test_a_gardenlet_of_its_name_excludes_it_and_the_other_way_round(self) -> None:
        with pytest.raises(Forbidden, match=r"metadata\.name: gardenlet garden/child is there"):
            admitted(a_managed_seed(), facts_with(a_child(), others={GARDENLET: a_gardenlet()}))
        there = facts_with(None, others={ObjectKey("managedseed", "garden", "child"): a_managed_seed()})
        assert list(related_queries(a_gardenlet(), None)) == [ObjectQuery(ObjectKey("managedseed", "garden", "child"))]
        with pytest.raises(Forbidden, match=r"metadata\.name: managedseed garden/child is there"):
            admitted(a_gardenlet(), there)
        admitted(a_gardenlet(), there, a_gardenlet())

    def test_one_managed_seed_is_all_that_a_shoot_bears(self) -> None:
        twin = a_managed_seed(metadata={"name": "twin"})
        related = RelatedObjects(objects={SHOOT: a_child()}, managed_seeds={SHOOT: a_managed_seed()})
        assert "ManagedSeed child stands on shoot garden/child already" in problems_of(twin, related)["spec.shoot.name"]

    def test_only_a_new_spec_is_decided(self) -> None:
        old = admitted(a_managed_seed(), facts_with(a_child()))
        labelled = merged(old, {"metadata": {"labels": {"a": "b"}}})
        assert list(related_queries(labelled, old)) == []
        assert admitted(labelled, RelatedObjects(), old) == labelled

    def test_one_that_is_being_deleted_is_left_alone(self) -> None:
        old = a_managed_seed(metadata={"deletionTimestamp": "2026-01-02T03:04:05Z"})
        changed = merged(old, {"spec": {"seedTemplate": {"spec": {"provider": {"type": "gcp"}}}}})
        assert list(related_queries(changed, old)) == []
        admitted(changed, RelatedObjects(), old)

    def test_its_shoot_is_asked_for_its_seed_and_a_gardenlet_of_its_name(self) -> None:
        assert list(related_queries(a_managed_seed(), None)) == [
            ObjectQuery(SHOOT),
            SeedOfShootQuery(SHOOT),
            ObjectQuery(GARDENLET),
            ManagedSeedOfShootQuery(SHOOT),
        ]
        wider = a_managed_seed({"taints": [{"key": "a"}]})
        assert list(related_queries(wider, a_managed_seed())) == [ObjectQuery(SHOOT), SeedOfShootQuery(SHOOT)]

    def test_it_is_written_only_on_the_shoot_that_it_was_decided_on(self) -> None:
        related = facts_with(a_child())
        preconditions = write_guards(admitted(a_managed_seed(), related), None, related)
        assert [(guard.kind, guard.name, guard.version) for guard in preconditions] == [
            ("version", SHOOT.stored, 7),
            ("version", GARDENLET.stored, 0),
        ]

    def test_one_in_use_cannot_be_deleted(self) -> None:
        assert [(guard.kind, guard.name) for guard in deletion_guards(a_managed_seed())] == [("usage", "child")]


USED: Document = {
    "provider": {"type": "aws", "region": "eu-west-1", "zones": ["eu-west-1a"]},
    "dns": {"internal": {"domain": "internal.example.org"}, "defaults": [{"domain": "a.org"}, {"domain": "b.org"}]},
}
GUEST = a_shoot("guest", spec={"dns": {"domain": "guest.dev.a.org"}})


class TestSeedInUse:
    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"provider": {"zones": []}}, "provider.zones"),
            ({"dns": {"internal": {"domain": "other.example.org"}}}, "dns.internal.domain"),
            ({"dns": {"internal": None}}, "dns.internal.domain"),
            ({"dns": {"defaults": [{"domain": "b.org"}]}}, "dns.defaults"),
        ],
    )
    def test_what_its_shoots_need_stays(self, change: Document, field: str) -> None:
        old = a_seed("child", spec=USED)
        changed = a_seed("child", spec=merged(USED, change))
        assert list(related_queries(changed, old)) == [ShootsOnSeedQuery("child")]
        problems = problems_of(changed, facts_with(None, GUEST), old)
        assert list(problems) == [f"spec.{field}"]
        assert "gardenbus drain" in problems[f"spec.{field}"]
        admitted(changed, RelatedObjects(shoots_on={"child": ()}), old)

    @pytest.mark.parametrize(
        "change",
        [
            {"provider": {"zones": ["eu-west-1a", "eu-west-1b"]}},
            {"dns": {"defaults": [{"domain": "b.org"}, {"domain": "a.org"}, {"domain": "c.org"}]}},
            {"taints": [{"key": "a"}]},
        ],
    )
    def test_what_is_added_takes_nothing_away(self, change: Document) -> None:
        assert list(related_queries(a_seed("child", spec=merged(USED, change)), a_seed("child", spec=USED))) == []

    def test_an_unused_default_domain_may_go(self) -> None:
        fewer = merged(USED, {"dns": {"defaults": [{"domain": "a.org"}]}})
        admitted(a_seed("child", spec=fewer), facts_with(None, GUEST), a_seed("child", spec=USED))

    def test_the_same_holds_for_its_managed_seed(self) -> None:
        old = a_managed_seed(USED)
        internal = merged(USED, {"dns": {"internal": {"domain": "other.example.org"}}})
        assert ShootsOnSeedQuery("child") in related_queries(a_managed_seed(internal), old)
        problems = problems_of(a_managed_seed(internal), facts_with(a_child(), GUEST), old)
        assert list(problems) == ["spec.seedTemplate.spec.dns.internal.domain"]
        admitted(a_managed_seed(internal), facts_with(a_child()), old)


MOVED_POOL: Document = {"name": "pool-a", "machine": {"type": "m5.large"}, "zones": ["eu-west-1b"]}


class TestShootBehindASeed:
    def managed_seeds(self, *zones: str) -> RelatedObjects:
        return RelatedObjects(
            managed_seeds={SHOOT: a_managed_seed({"provider": {"zones": list(zones or ("eu-west-1a",))}})}
        )

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"addons": {"nginxIngress": {"enabled": True}}}, "spec.addons.nginxIngress.enabled"),
            (
                {"kubernetes": {"verticalPodAutoscaler": {"enabled": False}}},
                "spec.kubernetes.verticalPodAutoscaler.enabled",
            ),
            ({"kubernetes": {"verticalPodAutoscaler": None}}, "spec.kubernetes.verticalPodAutoscaler.enabled"),
            ({"provider": {"workers": [MOVED_POOL]}}, "spec.provider.workers"),
        ],
    )
    def test_what_its_seed_needs_stays(self, change: Document, field: str) -> None:
        changed = a_child(spec=change)
        assert ManagedSeedOfShootQuery(SHOOT) in related_queries(changed, a_child())
        problems = problems_of(changed, self.managed_seeds(), a_child())
        assert list(problems) == [field]
        assert "ManagedSeed child stands on this shoot" in problems[field]

    def test_its_nodes_range_stays_even_before_it_is_placed(self) -> None:
        old = a_child(spec={"seedName": None})
        changed = merged(old, {"spec": {"networking": {"nodes": "10.1.0.0/16"}}})
        assert list(problems_of(changed, self.managed_seeds(), old)) == ["spec.networking.nodes"]

    def test_a_zone_that_its_seed_is_not_registered_in_may_go(self) -> None:
        pools = [{"name": "pool-a", "zones": ["eu-west-1a", "eu-west-1b"]}]
        old = a_child(spec={"provider": {"workers": pools}})
        admitted(a_child(), self.managed_seeds("eu-west-1a"), old)
        assert list(problems_of(a_child(), self.managed_seeds("eu-west-1b"), old)) == ["spec.provider.workers"]

    def test_without_a_managed_seed_it_may_be_changed_as_long_as_there_is_none(self) -> None:
        changed = a_child(spec={"addons": {"nginxIngress": {"enabled": True}}})
        result = admitted(changed, RelatedObjects(), a_child())
        preconditions = write_guards(result, a_child(), RelatedObjects())
        assert [(guard.kind, guard.name) for guard in preconditions] == [("references", SHOOT.stored)]
        assert write_guards(result, None, RelatedObjects()) == ()

    def test_other_changes_and_other_namespaces_ask_nobody(self) -> None:
        profile, project = ObjectQuery(ObjectKey("cloudprofile", "", "aws")), ProjectQuery("garden")
        versioned = a_child(spec={"kubernetes": {"version": "1.34.2"}})
        assert set(related_queries(versioned, a_child())) == {profile, project}
        old = a_shoot()
        changed = a_shoot(spec={"addons": {"nginxIngress": {"enabled": True}}})
        assert list(related_queries(changed, old)) == [ProjectQuery("garden-dev")]

    def test_it_cannot_be_deleted_and_the_refusal_says_what_comes_first(self) -> None:
        (guard,) = deletion_guards(a_child())
        assert (guard.kind, guard.name) == ("references", SHOOT.stored)
        assert "delete that first" in guard.message
        (guard,) = deletion_guards(a_child(metadata={"annotations": {"shoot.gardener.cloud/use-as-seed": "true"}}))
        assert "take off metadata.annotations[shoot.gardener.cloud/use-as-seed] first" in guard.message


def test_only_new_shoots_of_the_garden_get_their_autoscaler() -> None:
    new = mutate(a_shoot("child", "garden"), None, RelatedObjects(), user="ann").document
    assert new["spec"]["kubernetes"]["verticalPodAutoscaler"] == {"enabled": True}
    for document, old in (
        (a_shoot("child", "garden"), a_shoot("child", "garden")),
        (a_shoot(), None),
        (a_shoot("child", "garden", spec={"provider": {"workers": []}}), None),
    ):
        kubernetes = mutate(document, old, RelatedObjects(), user="ann").document["spec"]["kubernetes"]
        assert "verticalPodAutoscaler" not in kubernetes
