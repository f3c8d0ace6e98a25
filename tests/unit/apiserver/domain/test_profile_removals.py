"""What is taken out of a profile: the guards against its users, and against profiles below it.

The cases of profiles are those of Gardener's `plugin/pkg/global/resourcereferencemanager/admission_test.go`.
"""

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins import resource_reference_manager
from gardenbus.apiserver.domain.profile_removals import removal_guards, removal_queries
from gardenbus.apiserver.domain.related_objects import ProfilesBelowQuery, RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.index_keys import index_keys_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import InvalidResource
from tests.support.builders import a_cloudprofile, a_namespaced_cloudprofile, a_shoot, merged

AWS = "cloudprofile:_:aws#"
BEFORE = a_cloudprofile(
    spec={
        "kubernetes": {"versions": [{"version": "1.34.1"}, {"version": "1.33.6"}, {"version": "1.33.4"}]},
        "volumeTypes": [{"name": "gp3"}],
        "regions": [{"name": "eu-west-1"}, {"name": "eu-central-1"}],
        "machineImages": [{"name": "gardenlinux", "versions": [{"version": "1592.3.0"}, {"version": "1443.1.0"}]}],
    }
)


def guarded(new: Document, old: Document | None = BEFORE, facts: RelatedObjects | None = None) -> set[str]:
    return {guard.name for guard in removal_guards(new, old, facts or RelatedObjects())}


@pytest.mark.parametrize(
    ("spec", "references"),
    [
        ({}, set[str]()),
        ({"caBundle": "new", "regions": [{"name": "eu-central-1"}, {"name": "eu-west-1"}]}, set[str]()),
        ({"regions": [{"name": "eu-west-1"}]}, {"regions/eu-central-1"}),
        ({"machineTypes": None}, {"machineTypes/m5.large"}),
        ({"volumeTypes": []}, {"volumeTypes/gp3"}),
        (
            {"kubernetes": {"versions": [{"version": "1.34.1"}, {"version": "1.33.6"}]}},
            {"kubernetes.versions/1.33.4"},
        ),
        (
            {"kubernetes": {"versions": [{"version": "1.34.1"}]}},
            {"kubernetes.versions/1.33.4", "kubernetes.versions/1.33.6", "kubernetes.versions/1.33"},
        ),
        (
            {"machineImages": [{"name": "gardenlinux", "versions": [{"version": "1592.3.0"}]}]},
            {
                "machineImages/gardenlinux/1443.1.0",
                "machineImages/gardenlinux/1443.1",
                "machineImages/gardenlinux/1443",
            },
        ),
    ],
)
def test_what_is_removed_must_have_no_users(spec: Document, references: set[str]) -> None:
    changed = merged(BEFORE, {"spec": spec})
    assert guarded(changed) == {AWS + reference for reference in references}
    assert list(removal_queries(changed, BEFORE)) == ([ProfilesBelowQuery("aws")] if references else [])


def test_new_profiles_and_those_that_are_being_deleted_are_left_alone() -> None:
    assert guarded(BEFORE, None) == set()
    assert (
        guarded(a_cloudprofile(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, spec={"regions": []})) == set()
    )


def test_the_shoots_of_profiles_below_use_it_too_unless_those_offer_it_themselves() -> None:
    below = a_namespaced_cloudprofile("plain", status=None)
    own = a_namespaced_cloudprofile("own", status=None, spec={"machineTypes": [{"name": "m5.large"}]})
    facts = RelatedObjects(profiles_below={"aws": [below, own]})
    assert guarded(merged(BEFORE, {"spec": {"machineTypes": []}}), facts=facts) == {
        f"{AWS}machineTypes/m5.large",
        "namespacedcloudprofile:garden-dev:plain#machineTypes/m5.large",
    }


def test_of_a_namespaced_profile_counts_what_is_offered_with_its_parent() -> None:
    facts = RelatedObjects(objects={ObjectKey("cloudprofile", "", "aws"): BEFORE})
    types = {"machineTypes": [{"name": "m5.large"}, {"name": "huge"}]}
    old, new = a_namespaced_cloudprofile(spec=types), a_namespaced_cloudprofile()
    assert guarded(new, old, facts) == {"namespacedcloudprofile:garden-dev:own#machineTypes/huge"}


def test_a_guard_names_the_field_and_shoots_are_indexed_under_what_it_asks_for() -> None:
    (guard,) = removal_guards(merged(BEFORE, {"spec": {"machineTypes": []}}), BEFORE, RelatedObjects())
    assert guard.message == "spec.machineTypes: m5.large stays while shoots use it"
    assert guard.name in index_keys_of(a_shoot()).references


CHAIN = Admission([resource_reference_manager.PLUGIN])
FUTURE = "2027-01-01T00:00:00Z"
ALLOWED: set[str] = set()


def images(**versions: list[str]) -> list[Document]:
    return [{"name": name, "versions": [{"version": one} for one in listed]} for name, listed in versions.items()]


COREOS, UBUNTU = ["1.17.3", "1.17.1", "1.16.0"], ["1.17.3"]
PARENT = a_cloudprofile(
    spec={
        "kubernetes": {"versions": [{"version": "1.24.2"}, {"version": "1.24.1"}]},
        "machineImages": images(coreos=COREOS, ubuntu=UBUNTU),
    }
)
NEWEST: Document = {"kubernetes": {"versions": [{"version": "1.24.2"}]}}
OVERRIDE: Document = {"kubernetes": {"versions": [{"version": "1.24.1", "expirationDate": FUTURE}]}}
OTHER_PARENT: Document = {"parent": {"kind": "CloudProfile", "name": "other"}}


def rejected(change: Document, below: Document, **metadata: object) -> set[str]:
    """Fields of a CloudProfile whose change is refused with one profile below it."""
    profile = a_namespaced_cloudprofile("own", status=None, spec=below, metadata=metadata)
    listed = [profile] if profile["spec"]["parent"]["name"] == "aws" else []
    changed = merged(PARENT, {"spec": change})
    is_read = ProfilesBelowQuery("aws") in CHAIN.related_queries(changed, PARENT)
    related = RelatedObjects(profiles_below={"aws": listed} if is_read else {})
    try:
        CHAIN.admit(changed, PARENT, related)
    except InvalidResource as error:
        return {f"{one.field.removeprefix('spec.')}: {one.message.split(': ')[1]}" for one in error.problems}
    return ALLOWED


@pytest.mark.parametrize(
    ("change", "below", "expected"),
    [
        ({}, OVERRIDE, ALLOWED),
        (NEWEST, {}, ALLOWED),
        (NEWEST, OVERRIDE, {"kubernetes.versions: 1.24.1 stays"}),
        (NEWEST, OVERRIDE | OTHER_PARENT, ALLOWED),
        (NEWEST, {"kubernetes": NEWEST["kubernetes"]}, ALLOWED),
        (
            {"machineImages": images(coreos=COREOS[:2], ubuntu=UBUNTU)},
            {"machineImages": images(coreos=["1.16.0"])} | OTHER_PARENT,
            ALLOWED,
        ),
        (
            {"machineImages": images(coreos=COREOS[:2], ubuntu=UBUNTU)},
            {"machineImages": images(coreos=["1.16.0"])},
            {"machineImages: coreos/1.16.0 stays"},
        ),
        (
            {"machineImages": images(coreos=COREOS[:2], ubuntu=UBUNTU)},
            {"machineImages": images(coreos=["1.15.0", "1.17.1"])},
            ALLOWED,
        ),
        (
            {"machineImages": images(ubuntu=UBUNTU)},
            {"machineImages": images(coreos=["1.16.0"])},
            {"machineImages: coreos stays"},
        ),
        (
            {"machineImages": images(ubuntu=UBUNTU)},
            {"machineImages": images(coreos=["1.15.0"])},
            {"machineImages: coreos stays"},
        ),
        (
            {"machineImages": images(coreos=COREOS, ubuntu=UBUNTU, gardenlinux=["1.17.3"])},
            {"machineImages": images(gardenlinux=["1.0.0"])},
            {"machineImages: gardenlinux cannot be added"},
        ),
    ],
)
def test_what_profiles_below_name_of_their_parent_stays_and_their_images_stay_theirs(
    change: Document, below: Document, expected: set[str]
) -> None:
    assert rejected(change, below) == expected
    assert rejected(change, below, deletionTimestamp="2026-01-01T00:00:00Z") == ALLOWED


PROFILE = "namespacedcloudprofile:garden-dev:own#"


@pytest.mark.parametrize(
    ("before", "after", "references"),
    [
        ({}, {"machineImages": images(coreos=["1.0.0"])}, ALLOWED),
        (OVERRIDE, {}, ALLOWED),  # the parent has the version: it is offered still, also where it has expired
        (OVERRIDE, {"kubernetes": {"versions": []}}, ALLOWED),
        (OVERRIDE, {"kubernetes": {"versions": [{"version": "1.24.1", "expirationDate": "2027-02-01"}]}}, ALLOWED),
        ({"machineImages": images(coreos=["1.17.3"])}, {"machineImages": []}, ALLOWED),
        (
            {"machineImages": images(coreos=["1.1.2"])},
            {"machineImages": []},
            {"coreos/1.1.2", "coreos/1.1"},
        ),
        (
            {"machineImages": images(custom=["1.1.2"])},
            {"machineImages": []},
            {"custom", "custom/1.1.2", "custom/1.1", "custom/1"},
        ),
        ({"limits": {"maxNodesTotal": 12}}, {"limits": {"maxNodesTotal": 5}}, ALLOWED),
    ],
)
def test_of_a_namespaced_profile_stays_what_shoots_use_and_its_parent_does_not_offer(
    before: Document, after: Document, references: set[str]
) -> None:
    facts = RelatedObjects(objects={ObjectKey("cloudprofile", "", "aws"): PARENT})
    old, new = (a_namespaced_cloudprofile(status=None, spec=spec) for spec in (before, after))
    assert guarded(new, old, facts) == {f"{PROFILE}machineImages/{part}" for part in references}


def test_a_limit_may_be_lowered_below_what_shoots_have() -> None:
    old, new = (merged(PARENT, {"spec": {"limits": {"maxNodesTotal": most}}}) for most in (12, 5))
    assert CHAIN.related_queries(new, old) == ()
    assert guarded(new, old) == ALLOWED


def test_a_shoot_that_is_being_deleted_uses_nothing() -> None:
    parts = {reference for reference in index_keys_of(a_shoot()).references if reference.startswith(AWS)}
    leaving = merged(a_shoot(), {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert parts
    assert not parts.intersection(index_keys_of(leaving).references)
