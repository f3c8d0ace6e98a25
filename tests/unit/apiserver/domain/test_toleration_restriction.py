"""ShootTolerationRestriction: Gardener's own cases (`plugin/pkg/shoot/tolerationrestriction/admission_test.go`)."""

from contextlib import nullcontext

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.plugins.table import enabled_plugins
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.configuration.admission import AdmissionConfiguration, TolerationLists
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.tolerations import UNCHECKED_TOLERATIONS
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from tests.support.admissions import admit, mutate
from tests.support.builders import a_cloudprofile, a_project, a_shoot

ANY_OF_KEY: Document = {"key": "bax"}
ONE_OF_KEY: Document = {"key": "bax", "value": "foo"}
OTHER_OF_KEY: Document = {"key": "bax", "value": "bar"}
FOO: Document = {"key": "foo"}
NONE: list[Document] = []


def tolerating(*tolerations: Document) -> Document:
    return a_shoot(spec={"tolerations": list(tolerations)})


def facts(**tolerations: list[Document]) -> RelatedObjects:
    profile = {ObjectKey("cloudprofile", "", "aws"): a_cloudprofile()}
    return RelatedObjects(objects=profile, projects={"garden-dev": a_project(spec={"tolerations": tolerations})})


@pytest.mark.parametrize(
    ("own", "defaults", "expected"),
    [
        ([{"key": "baz"}], NONE, [{"key": "baz"}]),
        ([{"key": "baz"}], [{"key": "bar"}], [{"key": "baz"}, {"key": "bar"}]),
        ([{"key": "baz"}], [{"key": "bar"}, {"key": "baz", "value": "foo"}], [{"key": "baz"}, {"key": "bar"}]),
    ],
)
def test_a_new_shoot_gets_the_projects_defaults_of_keys_that_it_lacks(
    own: list[Document], defaults: list[Document], expected: list[Document]
) -> None:
    related = facts(defaults=defaults, whitelist=defaults)
    assert mutate(tolerating(*own), None, related, user="ann").document["spec"]["tolerations"] == expected
    changed = mutate(tolerating(*own), tolerating(*own), related, user="ann").document
    assert changed["spec"]["tolerations"] == own


@pytest.mark.parametrize(
    ("own", "had", "whitelist", "is_allowed"),
    [
        (NONE, None, NONE, True),
        ([FOO, ONE_OF_KEY], None, [FOO, ANY_OF_KEY], True),
        ([FOO, ONE_OF_KEY], None, [FOO, ONE_OF_KEY], True),
        ([FOO, ONE_OF_KEY], None, [FOO, OTHER_OF_KEY], False),
        ([ANY_OF_KEY], None, [ONE_OF_KEY], False),
        ([FOO, ONE_OF_KEY], [FOO, ONE_OF_KEY], NONE, True),
        ([ONE_OF_KEY], [FOO, ONE_OF_KEY], NONE, True),
        ([{"key": "new"}, ONE_OF_KEY], [FOO, ONE_OF_KEY], NONE, False),
        ([FOO, ONE_OF_KEY, {"key": "new"}], [FOO, ONE_OF_KEY], NONE, False),
    ],
)
def test_what_is_new_must_be_on_the_projects_whitelist(
    own: list[Document], had: list[Document] | None, whitelist: list[Document], is_allowed: bool
) -> None:
    old = None if had is None else tolerating(*had)
    expected = nullcontext() if is_allowed else pytest.raises(Forbidden, match="whitelist")
    with expected:
        admit(tolerating(*own), old, facts(whitelist=whitelist), user="ann")


def test_the_lists_of_a_configuration_count_besides_those_of_a_project() -> None:
    lists = TolerationLists(defaults=(FOO,), whitelist=(ANY_OF_KEY,))
    chain = Admission(enabled_plugins(AdmissionConfiguration(tolerations=lists)))
    related = facts(defaults=[{"key": "bar"}], whitelist=NONE)
    given = chain.mutate(tolerating(ONE_OF_KEY), None, related, user="ann").document
    assert given["spec"]["tolerations"] == [ONE_OF_KEY, FOO, {"key": "bar"}]
    chain.admit(given, None, related, user="ann")
    with pytest.raises(Forbidden, match="whitelist"):
        chain.admit(tolerating({"key": "new"}), None, related, user="ann")
    homeless = chain.mutate(tolerating(ONE_OF_KEY, {"key": "new"}), None, RelatedObjects(), user="ann").document
    assert homeless["metadata"]["annotations"][UNCHECKED_TOLERATIONS] == '[{"key":"new"}]'
