"""Shoots against their profiles and bindings: what is checked, when, and what is proposed instead."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardenbus.apiserver.domain.nearest_values import nearest_names, nearest_versions
from gardenbus.apiserver.domain.profile_admission import profile_guards
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import InvalidResource
from tests.support.admissions import admit_profile
from tests.support.builders import a_cloudprofile, a_namespaced_cloudprofile, a_shoot, merged

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
OFFER: Document = {
    "kubernetes": {
        "versions": [
            {"version": "1.34.1"},
            {"version": "1.33.6", "expirationDate": "2026-07-01T00:00:00Z"},
            {"version": "1.32.9", "expirationDate": "2026-05-01T00:00:00Z"},
            {"version": "1.31.0", "expirationDate": "2026-05-01"},
        ]
    },
    "machineImages": [
        {"name": "gardenlinux", "versions": [{"version": "1592.3.0"}, {"version": "1443.1.0"}]},
        {"name": "ubuntu", "versions": [{"version": "22.4.1", "expirationDate": "2026-05-01T00:00:00Z"}]},
    ],
    "machineTypes": [{"name": "m5.large"}, {"name": "m5.xlarge"}, {"name": "m4.large", "usable": False}],
    "volumeTypes": [{"name": "gp3"}, {"name": "io1", "usable": False}],
    "regions": [
        {"name": "eu-west-1", "zones": [{"name": "eu-west-1a"}, {"name": "eu-west-1b"}]},
        {"name": "eu-central-1", "zones": [{"name": "eu-central-1a"}]},
        {"name": "ap-south-1"},
    ],
}


def facts_of(*documents: Document) -> RelatedObjects:
    return RelatedObjects(
        objects={
            ObjectKey(each["kind"].lower(), each["metadata"].get("namespace") or "", each["metadata"]["name"]): each
            for each in documents
        }
    )


def worker(**changes: Any) -> Document:
    pool: Document = {"name": "pool-a", "machine": {"type": "m5.large"}, "zones": ["eu-west-1a"]}
    return {"provider": {"workers": [merged(pool, changes)]}}


def problems_of(spec: Document, old: Document | None = None, profile: Document | None = None) -> dict[str, str]:
    """The problems of a shoot; those with a profile that has a version, as every stored one has, are the same."""
    profile = profile if profile is not None else a_cloudprofile(spec=OFFER)
    identity = {"metadata": {"uid": repr(profile), "resourceVersion": "1"}}
    problems = problems_with(spec, old, profile)
    assert problems_with(spec, old, merged(profile, identity)) == problems
    return problems


def problems_with(spec: Document, old: Document | None, profile: Document) -> dict[str, str]:
    try:
        admit_profile(a_shoot(spec=spec), old, facts_of(profile), now=NOW)
    except InvalidResource as error:
        return {problem.field: problem.message for problem in error.problems}
    return {}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"kubernetes": {"version": "1.33.6"}},
        {"kubernetes": None},
        {"region": "ap-south-1"} | worker(zones=["anywhere"]),
        {"provider": {"workers": []}},
        {"provider": {"workers": None}},
        worker(machine={"image": {"name": "gardenlinux", "version": "1592.3.0"}}),
        worker(machine={"image": {"name": "ubuntu"}}),
        worker(kubernetes={"version": "1.34.1"}, volume={"type": "gp3"}),
        worker(machine=None),
    ],
)
def test_what_the_profile_offers_is_taken(spec: Document) -> None:
    assert problems_of(spec) == {}


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"kubernetes": {"version": "9.99.0"}}, "spec.kubernetes.version", "the nearest are 1.34.1, 1.33.6"),
        ({"kubernetes": {"version": "1.32.9"}}, "spec.kubernetes.version", "the nearest are 1.33.6, 1.34.1"),
        ({"kubernetes": {"version": "1.31.0"}}, "spec.kubernetes.version", "does not offer '1.31.0'"),
        ({"kubernetes": {"version": "1.3"}}, "spec.kubernetes.version", "does not offer '1.3'"),
        ({"region": "mars-1"}, "spec.region", "the nearest are eu-west-1, ap-south-1, eu-central-1"),
        ({"provider": {"type": "gcp"}}, "spec.provider.type", "is 'gcp', and the cloud profile is for aws"),
        (
            worker(machine={"type": "m5.lrage"}),
            "spec.provider.workers[0].machine.type",
            "does not offer 'm5.lrage'; the nearest are m5.large, m5.xlarge",
        ),
        (worker(machine={"type": "m4.large"}), "spec.provider.workers[0].machine.type", "does not offer 'm4.large'"),
        (worker(volume={"type": "io1"}), "spec.provider.workers[0].volume.type", "does not offer 'io1'; there is gp3"),
        (
            worker(machine={"image": {"name": "gardenlinus", "version": "1"}}),
            "spec.provider.workers[0].machine.image.name",
            "the nearest are gardenlinux, ubuntu",
        ),
        (
            worker(machine={"image": {"name": "gardenlinux", "version": "1500.0.0"}}),
            "spec.provider.workers[0].machine.image.version",
            "the nearest are 1443.1.0, 1592.3.0",
        ),
        (worker(zones=["eu-west-1a", "eu-west-1c"]), "spec.provider.workers[0].zones[1]", "eu-west-1a, eu-west-1b"),
        (worker(zones=["eu-central-1a"]), "spec.provider.workers[0].zones[0]", "eu-west-1a, eu-west-1b"),
        (worker(kubernetes={"version": "1.20.0"}), "spec.provider.workers[0].kubernetes.version", "1.33.6, 1.34.1"),
    ],
)
def test_what_it_does_not_offer_is_refused_with_what_is_nearest(spec: Document, field: str, message: str) -> None:
    problems = problems_of(spec)
    assert list(problems) == [field]
    assert message in problems[field]


ARMS = {
    "machineTypes": [{"name": "m5.large"}, {"name": "m6g.large", "architecture": "arm64"}],
    "machineImages": [
        {"name": "old", "versions": [{"version": "1.0.0"}]},
        {"name": "both", "versions": [{"version": "2.0.0", "architectures": ["amd64", "arm64"]}]},
    ],
}


@pytest.mark.parametrize(
    ("machine", "offered"),
    [
        ({"type": "m5.large"}, None),
        ({"type": "m5.large", "architecture": "amd64", "image": {"name": "old", "version": "1.0.0"}}, None),
        ({"type": "m6g.large", "architecture": "arm64", "image": {"name": "both", "version": "2.0.0"}}, None),
        ({"type": "m6g.large"}, "arm64"),
        ({"type": "m5.large", "architecture": "arm64"}, "amd64"),
        ({"type": "m6g.large", "architecture": "arm64", "image": {"name": "old", "version": "1.0.0"}}, "amd64"),
    ],
)
def test_machine_type_and_image_have_the_workers_architecture(machine: Document, offered: str | None) -> None:
    """Gardener's cases of ShootValidator; what states none is amd64."""
    profile = a_cloudprofile(spec=OFFER | ARMS)
    field = "spec.provider.workers[0].machine.architecture"
    pool: Document = {"name": "pool-a", "machine": machine, "zones": ["eu-west-1a"]}
    spec = {"provider": {"workers": [pool]}}
    given = "'arm64'" if machine.get("architecture") == "arm64" else "'amd64'"
    expected = {} if offered is None else {field: f"the cloud profile does not offer {given}; there is {offered}"}
    assert problems_of(spec, profile=profile) == expected
    before = a_shoot(spec={"provider": {"workers": [{**pool, "machine": {"type": "m5.large"}}]}})
    assert problems_of(spec, before, profile) == expected, "also in a change"
    assert problems_of(spec, a_shoot(spec=spec), profile) == {}


def test_the_architecture_that_is_the_default_may_be_written_out() -> None:
    """Also where the image is not offered any more: nothing was chosen anew."""
    machine: Document = {"type": "gone", "image": {"name": "old", "version": "0.9.0"}}
    pools = [
        {"provider": {"workers": [{"name": "pool-a", "machine": each, "zones": ["eu-west-1a"]}]}}
        for each in (machine, machine | {"architecture": "amd64"})
    ]
    profile = a_cloudprofile(spec=OFFER | ARMS)
    assert problems_of(pools[1], a_shoot(spec=pools[0]), profile) == {}
    assert problems_of(pools[0], a_shoot(spec=pools[1]), profile) == {}


def test_everything_is_said_at_once() -> None:
    spec = {"region": "mars-1", "kubernetes": {"version": "9.99.0"}} | worker(machine={"type": "huge"})
    assert set(problems_of(spec)) == {
        "spec.region",
        "spec.kubernetes.version",
        "spec.provider.workers[0].machine.type",
    }


@pytest.mark.parametrize("field", ["kubernetes", "machineImages", "machineTypes", "volumeTypes", "regions"])
@pytest.mark.parametrize("empty", [None, "none of its own"])
def test_a_list_that_the_profile_leaves_empty_offers_anything(field: str, empty: str | None) -> None:
    spec = {"region": "mars-1", "kubernetes": {"version": "9.99.0"}} | worker(
        machine={"type": "huge", "image": {"name": "own", "version": "1"}}, volume={"type": "fast"}
    )
    nothing: Any = None if empty is None else ({"versions": []} if field == "kubernetes" else [])
    fields = {
        "kubernetes": "spec.kubernetes.version",
        "machineImages": "spec.provider.workers[0].machine.image.name",
        "machineTypes": "spec.provider.workers[0].machine.type",
        "volumeTypes": "spec.provider.workers[0].volume.type",
        "regions": "spec.region",
    }
    problems = problems_of(spec, profile=a_cloudprofile(spec=OFFER | {field: nothing}))
    assert set(problems) == set(fields.values()) - {fields[field]}


class TestChanges:
    STORED = merged(
        a_shoot(spec={"region": "mars-1", "kubernetes": {"version": "1.20.0"}}),
        {"spec": worker(machine={"type": "m1", "image": {"name": "own", "version": "1"}}, zones=["gone"])},
    )

    def changed(self, change: Document) -> dict[str, str]:
        return problems_of(merged(self.STORED, {"spec": change})["spec"], self.STORED)

    @pytest.mark.parametrize(
        ("change", "fields"),
        [
            ({}, set[str]()),
            ({"purpose": "testing", "kubernetes": {"allowPrivilegedContainers": True}}, set[str]()),
            ({"kubernetes": {"version": "1.20.1"}}, {"spec.kubernetes.version"}),
            ({"kubernetes": {"version": "1.34.1"}}, set[str]()),
            (worker(machine={"type": "m2", "image": None}, zones=["gone"]), {"spec.provider.workers[0].machine.type"}),
            (worker(machine={"type": "m1"}, zones=["gone", "new"]), set[str]()),
            (
                {"provider": {"workers": [{"name": "pool-b", "machine": {"type": "m1"}}]}},
                {"spec.provider.workers[0].machine.type"},
            ),
            (
                {"cloudProfileName": "aws", "cloudProfile": None, "purpose": "testing"},
                set[str](),
            ),
        ],
    )
    def test_only_what_has_changed_is_checked(self, change: Document, fields: set[str]) -> None:
        assert set(self.changed(change)) == fields

    def test_a_new_zone_is_one_of_the_shoots_region(self) -> None:
        old = a_shoot(spec=worker(zones=["gone"]))
        assert set(problems_of(worker(zones=["gone", "eu-west-1b", "new"]), old)) == {
            "spec.provider.workers[0].zones[2]"
        }

    def test_one_that_is_being_deleted_is_left_alone(self) -> None:
        deleting = merged(self.STORED, {"metadata": DELETING, "spec": {"kubernetes": {"version": "1.20.1"}}})
        admit_profile(deleting, self.STORED, facts_of(), now=NOW)

    def test_a_profile_that_has_gone_keeps_nobody_from_other_changes(self) -> None:
        newer = merged(self.STORED, {"spec": {"kubernetes": {"version": "1.20.1"}}})
        admit_profile(newer, self.STORED, facts_of(), now=NOW)

    def test_another_profile_is_checked_as_for_a_new_shoot(self) -> None:
        other = {"spec": {"cloudProfile": {"name": "own", "kind": "NamespacedCloudProfile"}}}
        with pytest.raises(InvalidResource) as raised:
            admit_profile(
                merged(self.STORED, other),
                self.STORED,
                facts_of(a_namespaced_cloudprofile(status={"cloudProfileSpec": OFFER})),
                now=NOW,
            )
        assert {"spec.region", "spec.kubernetes.version"} < {problem.field for problem in raised.value.problems}


class TestReferences:
    @pytest.mark.parametrize(
        ("spec", "field", "missing"),
        [
            ({"cloudProfile": {"name": "aws2"}}, "spec.cloudProfile.name", "cloudprofile aws2 not found"),
            (
                {"cloudProfile": None, "cloudProfileName": "aws2"},
                "spec.cloudProfileName",
                "cloudprofile aws2 not found",
            ),
            (
                {"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "own"}},
                "spec.cloudProfile.name",
                "namespacedcloudprofile garden-dev/own not found",
            ),
            ({"secretBindingName": "a"}, "spec.secretBindingName", "secretbinding garden-dev/a not found"),
            (
                {"credentialsBindingName": "a"},
                "spec.credentialsBindingName",
                "credentialsbinding garden-dev/a not found",
            ),
        ],
    )
    def test_what_a_shoot_names_must_be_there(self, spec: Document, field: str, missing: str) -> None:
        problems = problems_of(spec)
        assert list(problems) == [field]
        assert missing in problems[field]

    def test_a_binding_that_is_there_is_enough(self) -> None:
        binding = {"kind": "SecretBinding", "metadata": {"name": "a", "namespace": "garden-dev"}}
        admit_profile(a_shoot(spec={"secretBindingName": "a"}), None, facts_of(a_cloudprofile(), binding), now=NOW)

    def test_a_namespaced_profile_counts_as_merged_with_its_parent(self) -> None:
        own = a_namespaced_cloudprofile(
            status={"cloudProfileSpec": {"kubernetes": {"versions": [{"version": "1.99.0"}]}}}
        )
        named = {"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "own"}}
        assert problems_of(named | {"kubernetes": {"version": "1.99.0"}}, profile=own) == {}
        assert set(problems_of(named, profile=own)) == {"spec.kubernetes.version"}

    def test_the_write_depends_on_the_profile_as_it_was_read(self) -> None:
        facts = facts_of(a_cloudprofile(metadata={"resourceVersion": "7"}))
        (guard,) = profile_guards(a_shoot(), None, facts)
        assert (guard.kind, guard.name, guard.version) == ("version", "cloudprofile:_:aws", 7)
        assert profile_guards(a_shoot(spec={"purpose": "testing"}), a_shoot(), facts) == []


def test_the_nearest_come_first() -> None:
    assert nearest_names("m5.larg", ["c5.large", "m5.large", "m5.xlarge", "t3"]) == [
        "m5.large",
        "c5.large",
        "m5.xlarge",
    ]
    versions = ["1.34.2", "1.33.6", "1.32.13", "1.33.11", "2.0.0"]
    assert nearest_versions("1.33.9", versions) == ["1.33.11", "1.33.6", "1.32.13"]
    assert nearest_versions("9.99.0", versions)[0] == "2.0.0"
    assert nearest_versions("latest", versions) == ["1.32.13", "1.33.6", "1.33.11"]
