"""Defaults, prescriptions, refusals and guards."""

from collections.abc import Mapping
from typing import Any

import pytest

from gardenbus.apiserver.domain.merging import apply_three_way
from gardenbus.apiserver.domain.related_objects import (
    ObjectQuery,
    ProfilesBelowQuery,
    ProjectQuery,
    QuotasQuery,
    RelatedObjects,
    RelatedQuery,
)
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import namespace_of
from gardenbus.common.api.garden.tolerations import UNCHECKED_TOLERATIONS
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.admissions import admit, admit_deletion, deletion_guards, mutate, related_queries
from tests.support.builders import (
    CORE,
    a_cloudprofile,
    a_namespaced_cloudprofile,
    a_project,
    a_seed,
    a_shoot,
    merged,
)

CREATED_BY = "gardener.cloud/created-by"
CONFIRMATION = "confirmation.gardener.cloud/deletion"


def facts_of(*documents: Document) -> RelatedObjects:
    objects: dict[ObjectKey, Document] = {}
    projects: dict[str, Document] = {}
    for document in documents:
        metadata = document["metadata"]
        objects[ObjectKey(document["kind"].lower(), metadata.get("namespace") or "", metadata["name"])] = document
        if document["kind"] == "Project":
            projects[document["spec"]["namespace"]] = document
    return RelatedObjects(objects=objects, projects=projects)


def mutated(document: Document, old: Document | None = None, *existing: Document, user: str = "ann") -> Document:
    return mutate(document, old, facts_of(*existing), user=user).document


def annotation_of(shoot: Document) -> str | None:
    return shoot["metadata"].get("annotations", {}).get(UNCHECKED_TOLERATIONS)


def an_exposure_class(**scheduling: Any) -> Document:
    return {
        "apiVersion": CORE,
        "kind": "ExposureClass",
        "metadata": {"name": "internet"},
        "handler": "h",
        "scheduling": scheduling,
    }


def a_tolerant_project(*defaults: Document, whitelist: tuple[Document, ...] = ()) -> Document:
    return a_project(spec={"tolerations": {"defaults": list(defaults), "whitelist": list(whitelist)}})


class TestDefaults:
    def test_a_shoot_gets_scheduler_purpose_and_families(self) -> None:
        spec = mutated(a_shoot(spec={"purpose": None}))["spec"]
        assert (spec["schedulerName"], spec["purpose"], spec["networking"]["ipFamilies"]) == (
            "default-scheduler",
            "evaluation",
            ["IPv4"],
        )

    def test_what_is_stated_stays(self) -> None:
        spec = {"schedulerName": "mine", "purpose": "testing", "networking": {"ipFamilies": ["IPv6"]}}
        result = mutated(a_shoot(spec=spec))["spec"]
        assert {field: result[field] for field in ("schedulerName", "purpose")} == {
            "schedulerName": "mine",
            "purpose": "testing",
        }
        assert result["networking"]["ipFamilies"] == ["IPv6"]

    def test_families_come_only_with_networking(self) -> None:
        assert "networking" not in mutated(a_shoot(spec={"networking": None}))["spec"]

    def test_a_seed_is_visible_unless_it_says_otherwise(self) -> None:
        assert mutated(a_seed(spec={"settings": None}))["spec"]["settings"]["scheduling"]["visible"] is True
        hidden = a_seed(spec={"settings": {"scheduling": {"visible": False}}})
        assert mutated(hidden)["spec"]["settings"]["scheduling"]["visible"] is False

    def test_a_seed_can_be_selected_by_its_name(self) -> None:
        labels = {"env": "prod", "name.seed.gardener.cloud/other": "true"}
        seed = mutated(a_seed(metadata={"labels": labels}))
        assert seed["metadata"]["labels"] == {
            "env": "prod",
            "name.seed.gardener.cloud/aws-eu1": "true",
            "provider.extensions.gardener.cloud/aws": "true",
        }
        assert mutated(seed, seed) == seed

    @pytest.mark.parametrize(("name", "namespace"), [("dev", "garden-dev"), ("garden", "garden")])
    def test_a_project_gets_a_namespace(self, name: str, namespace: str) -> None:
        assert mutated(a_project(name, spec=None))["spec"]["namespace"] == namespace
        assert mutated(a_project(name, namespace="garden-own"))["spec"]["namespace"] == "garden-own"

    def test_managed_seeds_and_sets_get_theirs(self) -> None:
        config = {"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration"}
        document: Document = {
            "kind": "ManagedSeed",
            "metadata": {"name": "a", "namespace": "garden"},
            "spec": {"gardenlet": {"config": config}},
        }
        gardenlet = mutated(document)["spec"]["gardenlet"]
        assert (gardenlet["bootstrap"], gardenlet["mergeWithParent"]) == ("BootstrapToken", True)
        assert gardenlet["config"]["resources"] == {"capacity": {"shoots": 250}}
        spec = mutated({"kind": "ManagedSeedSet", "metadata": {"name": "a", "namespace": "garden"}, "spec": {}})["spec"]
        assert spec == {"replicas": 1, "revisionHistoryLimit": 10, "updateStrategy": {"type": "RollingUpdate"}}

    @pytest.mark.parametrize("spec", [None, [], "x", {"networking": []}, {"tolerations": "x", "provider": 1}])
    def test_a_malformed_manifest_is_left_to_validation(self, spec: Any) -> None:
        for kind in ("Shoot", "Seed", "Project", "ManagedSeed", "ManagedSeedSet", "SeedAutoscaler"):
            mutated({"kind": kind, "metadata": {"name": "a", "namespace": "garden"}, "spec": spec})

    def test_nothing_given_is_changed(self) -> None:
        shoot, before = a_shoot(), a_shoot()
        mutated(shoot, None, a_tolerant_project({"key": "x"}))
        assert shoot == before


class TestCreator:
    def test_who_created_it_is_recorded_whatever_the_manifest_says(self) -> None:
        claimed = a_shoot(metadata={"annotations": {CREATED_BY: "mallory"}})
        result = mutate(claimed, None, RelatedObjects(), user="ann")
        assert result.document["metadata"]["annotations"][CREATED_BY] == "ann"
        assert any(CREATED_BY in warning for warning in result.warnings)

    def test_it_stays_when_somebody_else_changes_the_object(self) -> None:
        old = a_shoot(metadata={"annotations": {CREATED_BY: "ann"}})
        assert mutated(a_shoot(), old, user="bob")["metadata"]["annotations"] == {CREATED_BY: "ann"}
        claimed = a_shoot(metadata={"annotations": {CREATED_BY: "bob"}})
        assert mutated(claimed, old, user="bob")["metadata"]["annotations"] == {CREATED_BY: "ann"}
        assert CREATED_BY not in mutated(claimed, a_shoot(), user="bob")["metadata"]["annotations"]

    def test_who_confirmed_a_deletion_is_recorded_while_it_is_confirmed(self) -> None:
        confirmed = a_shoot(metadata={"annotations": {CONFIRMATION: "true"}})
        first = mutated(confirmed, a_shoot(), user="ann")
        assert first["metadata"]["annotations"]["deletion.gardener.cloud/confirmed-by"] == "ann"
        again = mutated(first, first, user="bob")
        assert again["metadata"]["annotations"]["deletion.gardener.cloud/confirmed-by"] == "ann"
        withdrawn = merged(first, {"metadata": {"annotations": {CONFIRMATION: None}}})
        assert "deletion.gardener.cloud/confirmed-by" not in mutated(withdrawn, first)["metadata"]["annotations"]


class TestExposureClass:
    SHOOT = a_shoot(spec={"exposureClassName": "internet"})

    def test_its_selector_and_tolerations_are_merged_on_creation(self) -> None:
        expression = {"key": "tier", "operator": "Exists"}
        exposure_class = an_exposure_class(
            seedSelector={"matchLabels": {"a": "b"}, "matchExpressions": [expression], "providerTypes": ["aws", "gcp"]},
            tolerations=[{"key": "edge"}],
        )
        own = {"matchLabels": {"x": "y"}, "providerTypes": ["aws"]}
        spec = mutated(merged(self.SHOOT, {"spec": {"seedSelector": own}}), None, exposure_class)["spec"]
        assert spec["seedSelector"] == {
            "matchLabels": {"x": "y", "a": "b"},
            "matchExpressions": [expression],
            "providerTypes": ["aws", "gcp"],
        }
        assert spec["tolerations"] == [{"key": "edge"}]

    def test_a_contradicting_label_is_refused_and_the_same_label_is_not(self) -> None:
        exposure_class = an_exposure_class(seedSelector={"matchLabels": {"a": "b"}})
        with pytest.raises(Forbidden, match=r"matchLabels\[a\]"):
            mutated(merged(self.SHOOT, {"spec": {"seedSelector": {"matchLabels": {"a": "c"}}}}), None, exposure_class)
        mutated(merged(self.SHOOT, {"spec": {"seedSelector": {"matchLabels": {"a": "b"}}}}), None, exposure_class)

    def test_a_toleration_of_the_same_key_is_refused(self) -> None:
        exposure_class = an_exposure_class(tolerations=[{"key": "edge"}])
        with pytest.raises(Forbidden, match="'edge'"):
            mutated(
                merged(self.SHOOT, {"spec": {"tolerations": [{"key": "edge", "value": "x"}]}}), None, exposure_class
            )

    def test_a_class_that_is_not_there_is_refused_on_creation(self) -> None:
        with pytest.raises(InvalidResource, match=r"spec\.exposureClassName: exposureclass internet not found"):
            mutated(self.SHOOT)
        mutated(self.SHOOT, self.SHOOT)

    def test_later_changes_of_the_class_do_not_reach_the_shoot(self) -> None:
        changed = an_exposure_class(seedSelector={"matchLabels": {"new": "label"}}, tolerations=[{"key": "new"}])
        assert (
            mutated(self.SHOOT, mutated(self.SHOOT, None, an_exposure_class()), changed)["spec"]
            == mutated(self.SHOOT, None, an_exposure_class())["spec"]
        )

    def test_applying_the_same_manifest_again_changes_nothing(self) -> None:
        existing = (
            an_exposure_class(
                seedSelector={"matchLabels": {"a": "b"}, "providerTypes": ["gcp"]}, tolerations=[{"key": "edge"}]
            ),
            a_tolerant_project({"key": "team"}, whitelist=({"key": "own"},)),
        )
        given = merged(
            self.SHOOT, {"spec": {"tolerations": [{"key": "own"}], "seedSelector": {"providerTypes": ["aws"]}}}
        )
        first = mutated(apply_three_way(None, None, given), None, *existing)
        assert [one["key"] for one in first["spec"]["tolerations"]] == ["own", "team", "edge"]
        again = mutated(apply_three_way(first, given, given), first, *existing)
        assert again == first
        admit(again, first, facts_of(*existing))


class TestTolerations:
    def test_the_projects_defaults_are_added_on_creation(self) -> None:
        project = a_tolerant_project({"key": "a", "value": "1"}, {"key": "b"})
        spec = mutated(a_shoot(spec={"tolerations": [{"key": "a", "value": "2"}]}), None, project)["spec"]
        assert spec["tolerations"] == [{"key": "a", "value": "2"}, {"key": "b"}]

    def test_later_defaults_do_not_reach_the_shoot(self) -> None:
        assert "tolerations" not in mutated(a_shoot(), a_shoot(), a_tolerant_project({"key": "b"}))["spec"]

    @pytest.mark.parametrize(
        ("toleration", "whitelist", "is_allowed"),
        [
            ({"key": "a"}, {"key": "a"}, True),
            ({"key": "a", "value": "x"}, {"key": "a"}, True),
            ({"key": "a", "value": "x"}, {"key": "a", "value": "x"}, True),
            ({"key": "a", "value": "y"}, {"key": "a", "value": "x"}, False),
            ({"key": "a"}, {"key": "a", "value": "x"}, False),
            ({"key": "b"}, {"key": "a"}, False),
        ],
    )
    def test_the_whitelist_decides(self, toleration: Document, whitelist: Document, is_allowed: bool) -> None:
        related = facts_of(a_tolerant_project(whitelist=(whitelist,)), a_cloudprofile())
        shoot = a_shoot(spec={"tolerations": [toleration]})
        if is_allowed:
            admit(shoot, None, related)
            return
        with pytest.raises(Forbidden, match=r"spec\.tolerations: .*whitelist of the project dev"):
            admit(shoot, None, related)

    def test_without_a_project_they_are_noted_as_unchecked(self) -> None:
        shoot = a_shoot(spec={"tolerations": [{"key": "a", "value": "1"}, {"key": "b"}]})
        noted = mutate(shoot, None, RelatedObjects(), user="ann")
        assert annotation_of(noted.document) == '[{"key":"a","value":"1"},{"key":"b"}]'
        assert any("a=1, b: only what" in warning for warning in noted.warnings)
        assert annotation_of(mutated(a_shoot())) is None
        assert annotation_of(mutated(shoot, None, a_tolerant_project({"key": "a"}))) is None

    def test_the_note_goes_with_what_the_project_allows_and_nobody_else_takes_it_off(self) -> None:
        noted = mutated(a_shoot(spec={"tolerations": [{"key": "a"}, {"key": "b"}]}))
        forged = merged(noted, {"metadata": {"annotations": {UNCHECKED_TOLERATIONS: None}}})
        assert annotation_of(mutated(forged, noted)) == annotation_of(noted)
        assert list(related_queries(forged, noted)) == [ProjectQuery("garden-dev")]
        partly = mutated(forged, noted, a_tolerant_project(whitelist=({"key": "a"},)))
        assert annotation_of(partly) == '[{"key":"b"}]'
        assert annotation_of(mutated(partly, partly, a_tolerant_project({"key": "b"}))) is None
        fewer = merged(noted, {"spec": {"tolerations": [{"key": "b"}]}})
        assert annotation_of(mutated(fewer, noted)) == '[{"key":"b"}]'

    def test_more_without_a_project_is_noted_too_but_not_what_was_checked_once(self) -> None:
        checked = a_shoot(spec={"tolerations": [{"key": "a"}]})
        more = a_shoot(spec={"tolerations": [{"key": "a"}, {"key": "b"}]})
        assert annotation_of(mutated(more, checked)) == '[{"key":"b"}]'

    def test_what_the_exposure_class_gives_needs_no_project(self) -> None:
        shoot = a_shoot(spec={"exposureClassName": "internet", "tolerations": [{"key": "own"}]})
        noted = mutated(shoot, None, an_exposure_class(tolerations=[{"key": "edge"}]))
        assert [one["key"] for one in noted["spec"]["tolerations"]] == ["own", "edge"]
        assert annotation_of(noted) == '[{"key":"own"}]'

    def test_a_note_that_somebody_writes_is_taken_off(self) -> None:
        forged = a_shoot(metadata={"annotations": {UNCHECKED_TOLERATIONS: "x"}})
        assert annotation_of(mutated(forged, a_shoot())) is None
        assert annotation_of(mutated(forged, None, a_project())) is None

    def test_only_new_tolerations_are_checked_later(self) -> None:
        old = a_shoot(spec={"tolerations": [{"key": "old"}]})
        related = facts_of(a_tolerant_project())
        admit(old, old, related)
        with pytest.raises(Forbidden, match="new"):
            admit(a_shoot(spec={"tolerations": [{"key": "old"}, {"key": "new"}]}), old, related)


class TestPlacement:
    def test_a_shoot_in_no_project_is_taken_with_a_warning(self) -> None:
        result = mutate(a_shoot(), None, RelatedObjects(), user="ann")
        assert ["belongs to no Project" in warning for warning in result.warnings] == [True]
        admit(result.document, None, facts_of(a_cloudprofile()))

    def test_long_names_are_warned_about(self) -> None:
        warnings = mutate(a_shoot("a" * 19), None, facts_of(a_project()), user="ann").warnings
        assert ["22 characters together" in warning for warning in warnings] == [True]
        assert not mutate(a_shoot("a" * 18), None, facts_of(a_project()), user="ann").warnings

    def test_a_network_of_nodes_is_warned_of_where_there_are_none(self) -> None:
        workerless = a_shoot(spec={"provider": {"workers": []}})
        warnings = mutate(workerless, None, facts_of(a_project()), user="ann").warnings
        assert [each.partition(":")[0] for each in warnings] == [
            f"spec.networking.{field}" for field in ("type", "pods", "nodes")
        ]
        assert not mutate(workerless, workerless, facts_of(a_project()), user="ann").warnings

    def test_a_project_that_is_being_deleted_takes_no_shoots(self) -> None:
        leaving = a_project(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        with pytest.raises(Forbidden, match="is being deleted"):
            admit(a_shoot(), None, facts_of(leaving, a_cloudprofile()))
        admit(a_shoot(), a_shoot(), facts_of(leaving))

    def test_a_seed_named_at_creation_passes_the_checks_of_a_binding(self) -> None:
        placed = a_shoot(spec={"seedName": "aws-eu1"})
        admit(placed, None, facts_of(a_seed(), a_cloudprofile(), a_project()))
        with pytest.raises(Forbidden, match="no seed aws-eu1"):
            admit(placed, None, facts_of(a_cloudprofile(), a_project()))
        with pytest.raises(Forbidden, match="does not tolerate the seed's taints"):
            admit(placed, None, facts_of(a_seed(spec={"taints": [{"key": "x"}]}), a_cloudprofile(), a_project()))
        with pytest.raises(InvalidResource, match=r"spec\.cloudProfile\.name: cloudprofile aws not found"):
            admit(placed, None, facts_of(a_seed(), a_project()))
        with pytest.raises(Forbidden, match="garden-dev belongs to no Project"):
            admit(placed, None, facts_of(a_seed(), a_cloudprofile()))

    def test_a_seed_named_at_creation_settles_domain_and_ranges(self) -> None:
        seed = a_seed(
            spec={
                "dns": {"defaults": [{"domain": "example.com"}]},
                "networks": {"shootDefaults": {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"}},
            }
        )
        placed = a_shoot(spec={"seedName": "aws-eu1", "networking": {"pods": None, "services": None}})
        spec = mutated(placed, None, seed, a_project())["spec"]
        assert spec["dns"] == {"domain": "apollo.dev.example.com"}
        assert (spec["networking"]["pods"], spec["networking"]["services"]) == ("100.96.0.0/11", "100.64.0.0/13")
        assert mutated(placed, placed, seed, a_project())["spec"]["networking"].get("pods") is None

    def test_nodes_of_a_placed_shoot_may_change_where_they_are_disjoint_from_its_seed(self) -> None:
        networking = {"type": "calico", "nodes": "10.250.0.0/16", "pods": "100.64.0.0/12", "services": "100.80.0.0/13"}
        old = a_shoot(spec={"seedName": "aws-eu1", "networking": networking})
        related = facts_of(a_seed(spec={"networks": {"pods": "10.11.0.0/16", "services": "10.12.0.0/16"}}))
        admit(merged(old, {"spec": {"networking": {"nodes": "10.248.0.0/14"}}}), old, related)
        admit(old, merged(old, {"spec": {"networking": {"nodes": None}}}), related)
        with pytest.raises(InvalidResource, match=r"spec\.networking: seed aws-eu1: .* overlap with the seed's pods"):
            admit(merged(old, {"spec": {"networking": {"nodes": "10.11.128.0/17"}}}), old, related)
        overlapping = merged(old, {"spec": {"networking": {"pods": "10.11.0.0/17"}}})
        admit(merged(overlapping, {"spec": {"networking": {"nodes": "10.248.0.0/14"}}}), overlapping, related)

    def test_a_placed_shoots_selector_must_still_take_its_seed(self) -> None:
        old = a_shoot(spec={"seedName": "aws-eu1", "seedSelector": {"matchLabels": {"a": "b"}}})
        related = facts_of(a_seed(metadata={"labels": {"a": "b", "c": "d"}}))
        admit(merged(old, {"spec": {"seedSelector": {"matchLabels": {"c": "d"}}}}), old, related)
        for selector in (None, {"matchLabels": {"a": "x"}}, {"providerTypes": ["gcp"]}, {"providerTypes": ["*"]}):
            with pytest.raises(InvalidResource, match=r"^spec\.seedSelector"):
                admit(merged(old, {"spec": {"seedSelector": selector}}), old, related)

    def test_a_placed_shoots_control_plane_changes_as_far_as_its_seed_goes(self) -> None:
        old = a_shoot(spec={"seedName": "aws-eu1"})
        zonal = merged(old, {"spec": {"controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}}}})
        pinned = merged(old, {"spec": {"controlPlane": {"zones": ["eu-west-1a"]}}})
        for changed in (zonal, pinned):
            seed = ObjectQuery(ObjectKey("seed", "", "aws-eu1"))
            assert set(related_queries(changed, old)) == {seed, ProjectQuery("garden-dev")}
            admit(changed, old, facts_of(a_seed()))
            with pytest.raises(InvalidResource, match=r"^spec\.controlPlane: seed aws-eu1"):
                admit(changed, old, facts_of(a_seed(spec={"provider": {"zones": ["x", "y"]}})))

    def test_a_placed_shoot_keeps_to_its_profile_and_what_is_derived_of_it(self) -> None:
        old = a_shoot(spec={"seedName": "aws-eu1"})
        own = {"kind": "NamespacedCloudProfile", "name": "own"}
        derived = merged(old, {"spec": {"cloudProfile": own}})
        key = ObjectKey("namespacedcloudprofile", "garden-dev", "own")
        aws = ObjectQuery(ObjectKey("cloudprofile", "", "aws"))
        assert set(related_queries(derived, old)) == {ObjectQuery(key), aws, ProjectQuery("garden-dev")}
        admit(derived, old, facts_of(a_cloudprofile(), a_namespaced_cloudprofile()))
        admit(old, derived, facts_of(a_cloudprofile(), a_namespaced_cloudprofile()))
        stranger = a_namespaced_cloudprofile(spec={"parent": {"name": "gcp"}})
        with pytest.raises(InvalidResource, match=r"^spec\.cloudProfile: a placed shoot keeps to cloudprofile aws"):
            admit(derived, old, facts_of(a_cloudprofile(), stranger))
        with pytest.raises(InvalidResource, match=r"^spec\.cloudProfile\.name: .* not found"):
            admit(derived, old, facts_of(a_cloudprofile()))
        elsewhere = merged(old, {"spec": {"cloudProfile": {"name": "gcp"}}})
        with pytest.raises(InvalidResource, match=r"^spec\.cloudProfile"):
            admit(elsewhere, old, facts_of(a_cloudprofile(), a_cloudprofile("gcp")))
        admit(merged(elsewhere, {"spec": {"seedName": None}}), a_shoot(), facts_of(a_cloudprofile("gcp")))


class TestFinalizer:
    def test_it_is_kept_until_the_control_plane_is_gone(self) -> None:
        operation = {"type": "Reconcile", "state": "Succeeded", "progress": 100}
        status = {"technicalID": "shoot--dev--apollo", "lastOperation": operation}
        old = a_shoot(metadata={"finalizers": ["gardener"]}, status=status)
        with pytest.raises(Forbidden, match=r"metadata\.finalizers"):
            admit(a_shoot(status=status), old, RelatedObjects())
        deleted = merged(old, {"status": {"lastOperation": {"type": "Delete"}}})
        admit(a_shoot(), deleted, RelatedObjects())
        admit(a_shoot(), a_shoot(metadata={"finalizers": ["gardener"]}), RelatedObjects())


class TestNamespacedProfile:
    OWN = a_namespaced_cloudprofile(
        status=None,
        spec={
            "kubernetes": {"versions": [{"version": "1.34.1", "expirationDate": "2027-01-01T00:00:00Z"}]},
            "machineTypes": [{"name": "own"}],
            "machineImages": [{"name": "gardenlinux", "versions": [{"version": "9"}]}],
            "limits": {"maxNodesTotal": 5},
        },
    )

    def test_it_is_merged_with_its_parent(self) -> None:
        parent = a_cloudprofile(spec={"seedSelector": {"matchLabels": {"a": "b"}}})
        profile = mutated(self.OWN, None, parent)
        result = profile["status"]["cloudProfileSpec"]
        assert (result["type"], result["seedSelector"]) == ("aws", {"matchLabels": {"a": "b"}})
        assert result["kubernetes"]["versions"] == [{"version": "1.34.1", "expirationDate": "2027-01-01T00:00:00Z"}]
        assert [machine["name"] for machine in result["machineTypes"]] == ["m5.large", "own"]
        assert [image["version"] for image in result["machineImages"][0]["versions"]] == ["1592.3.0", "9"]
        assert parent == a_cloudprofile(spec={"seedSelector": {"matchLabels": {"a": "b"}}})
        validate(profile, None)

    def test_its_parent_must_be_there(self) -> None:
        with pytest.raises(InvalidResource, match=r"spec\.parent\.name"):
            admit(mutated(self.OWN), None, RelatedObjects())


class TestFacts:
    @pytest.mark.parametrize(
        ("document", "old", "queries"),
        [
            (a_shoot(), None, [ProjectQuery("garden-dev"), ObjectQuery(ObjectKey("cloudprofile", "", "aws"))]),
            (a_shoot(), a_shoot(), []),
            (a_shoot(metadata={"labels": {"a": "b"}}), a_shoot(), [ProjectQuery("garden-dev")]),
            (a_shoot(metadata={"annotations": {"a": "b"}}), a_shoot(), []),
            (a_shoot(spec={"tolerations": [{"key": "a"}]}), a_shoot(), [ProjectQuery("garden-dev")]),
            (
                a_shoot(spec={"seedName": "s", "exposureClassName": "e"}),
                None,
                [
                    ProjectQuery("garden-dev"),
                    ObjectQuery(ObjectKey("exposureclass", "", "e")),
                    ObjectQuery(ObjectKey("seed", "", "s")),
                    ObjectQuery(ObjectKey("cloudprofile", "", "aws")),
                ],
            ),
            (
                a_shoot(spec={"credentialsBindingName": "c", "kubernetes": {"version": "1.34.2"}}),
                a_shoot(),
                [
                    ObjectQuery(ObjectKey("cloudprofile", "", "aws")),
                    ObjectQuery(ObjectKey("credentialsbinding", "garden-dev", "c")),
                    QuotasQuery((ObjectKey("credentialsbinding", "garden-dev", "c"),)),
                ],
            ),
            (
                a_shoot(
                    metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, spec={"kubernetes": {"version": "1.34.2"}}
                ),
                a_shoot(),
                [ObjectQuery(ObjectKey("cloudprofile", "", "aws"))],
            ),
            (a_cloudprofile(), a_cloudprofile(), []),
            (a_cloudprofile(), a_cloudprofile(spec={"machineTypes": []}), []),
            (a_cloudprofile(spec={"machineTypes": []}), a_cloudprofile(), [ProfilesBelowQuery("aws")]),
            (
                a_shoot(spec={"seedName": "s", "cloudProfile": {"kind": "NamespacedCloudProfile", "name": "own"}}),
                a_shoot(),
                [
                    ProjectQuery("garden-dev"),
                    ObjectQuery(ObjectKey("seed", "", "s")),
                    ObjectQuery(ObjectKey("namespacedcloudprofile", "garden-dev", "own")),
                ],
            ),
            (
                a_namespaced_cloudprofile(),
                None,
                [ProjectQuery("garden-dev"), ObjectQuery(ObjectKey("cloudprofile", "", "aws"))],
            ),
            (a_seed(), None, []),
            ({"kind": "Shoot", "metadata": {"namespace": "a"}, "spec": 5}, None, [ProjectQuery("a")]),
        ],
    )
    def test_only_what_the_rules_read_is_asked_for(
        self, document: Document, old: Document | None, queries: list[RelatedQuery]
    ) -> None:
        resolving = {ProjectQuery(namespace_of(document))} if document["kind"] == "Shoot" else set[RelatedQuery]()
        assert set(related_queries(document, old)) == {*queries, *resolving}, "a shoot is resolved over its project"


class TestDeletion:
    @pytest.mark.parametrize(
        ("document", "preconditions"),
        [
            (a_seed("s1"), {("usage", "s1")}),
            (a_project("dev"), {("references", "namespace:_:garden-dev")}),
            (a_cloudprofile("aws"), {("references", "cloudprofile:_:aws")}),
            (a_namespaced_cloudprofile("own"), {("references", "namespacedcloudprofile:garden-dev:own")}),
            (an_exposure_class(), {("references", "exposureclass:_:internet")}),
            (
                {"kind": "Namespace", "metadata": {"name": "a"}},
                {("references", "namespace:_:a"), ("claim", "namespace/a")},
            ),
            (
                {"kind": "SecretBinding", "metadata": {"name": "a", "namespace": "b"}},
                {("references", "secretbinding:b:a")},
            ),
            (
                {"kind": "CredentialsBinding", "metadata": {"name": "a", "namespace": "b"}},
                {("references", "credentialsbinding:b:a")},
            ),
            ({"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}, set[Any]()),
        ],
    )
    def test_what_is_in_use_is_guarded(self, document: Document, preconditions: set[tuple[str, str]]) -> None:
        assert {(guard.kind, guard.name) for guard in deletion_guards(document)} == preconditions

    @pytest.mark.parametrize("annotations", [None, {}, {CONFIRMATION: "false"}, {CONFIRMATION: "True"}])
    def test_a_shoot_is_deleted_only_when_confirmed(self, annotations: Mapping[str, str] | None) -> None:
        with pytest.raises(Forbidden, match=r"confirmation\.gardener\.cloud/deletion"):
            admit_deletion(a_shoot(metadata={"annotations": annotations}))

    def test_a_confirmed_shoot_and_any_seed_may_go(self) -> None:
        admit_deletion(a_shoot(metadata={"annotations": {CONFIRMATION: "true"}}))
        admit_deletion(a_seed())
