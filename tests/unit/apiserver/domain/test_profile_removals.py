"""What is taken out of a profile: the guards against its users."""

import pytest

from gardenbus.apiserver.domain.profile_removals import removal_guards, removal_queries
from gardenbus.apiserver.domain.related_objects import ProfilesBelowQuery, RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.index_keys import index_keys_of
from gardenbus.common.api.keys import ObjectKey
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
