"""ShootExposureClass: Gardener's own cases (`plugin/pkg/shoot/exposureclass/admission_test.go`) as a table."""

import pytest

from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.admissions import mutate
from tests.support.builders import CORE, a_shoot

ONE = {"key": "abc", "operator": "In", "values": ["abc", "def"]}
OTHER = {"key": "abc", "operator": "In", "values": ["xyz"]}


def merged_spec(own: Document, scheduling: Document | None) -> Document:
    """Selector and tolerations of a new shoot with some of its own, and a class."""
    exposure_class: Document = {"apiVersion": CORE, "kind": "ExposureClass", "metadata": {"name": "public"}}
    exposure_class |= {"handler": "public"} if scheduling is None else {"handler": "public", "scheduling": scheduling}
    related = RelatedObjects(objects={ObjectKey("exposureclass", "", "public"): exposure_class})
    spec = mutate(a_shoot(spec={"exposureClassName": "public", **own}), None, related, user="ann").document["spec"]
    return {field: spec[field] for field in ("seedSelector", "tolerations") if spec.get(field)}


@pytest.mark.parametrize(
    ("own", "scheduling", "expected"),
    [
        ({}, None, {}),
        ({"tolerations": [{"key": "xyz"}]}, None, {"tolerations": [{"key": "xyz"}]}),
        ({"seedSelector": {"matchLabels": {"a": "b"}}}, {}, {"seedSelector": {"matchLabels": {"a": "b"}}}),
        (
            {"seedSelector": {"matchLabels": {"abc": "abc"}}},
            {"seedSelector": {"matchLabels": {"xyz": "xyz"}}},
            {"seedSelector": {"matchLabels": {"abc": "abc", "xyz": "xyz"}}},
        ),
        (
            {"seedSelector": {"matchExpressions": [ONE]}},
            {"seedSelector": {"matchExpressions": [OTHER]}},
            {"seedSelector": {"matchExpressions": [ONE, OTHER]}},
        ),
        (
            {"seedSelector": {"providerTypes": ["aws", "gcp"]}},
            {"seedSelector": {"providerTypes": ["gcp"]}},
            {"seedSelector": {"providerTypes": ["aws", "gcp"]}},
        ),
        ({"tolerations": [{"key": "xyz"}]}, {"tolerations": []}, {"tolerations": [{"key": "xyz"}]}),
        (
            {"tolerations": [{"key": "xyz"}]},
            {"tolerations": [{"key": "abc", "value": "def"}]},
            {"tolerations": [{"key": "xyz"}, {"key": "abc", "value": "def"}]},
        ),
    ],
)
def test_selector_and_tolerations_of_shoot_and_class_are_united(
    own: Document, scheduling: Document | None, expected: Document
) -> None:
    assert merged_spec(own, scheduling) == expected


@pytest.mark.parametrize(
    ("own", "scheduling"),
    [
        ({"seedSelector": {"matchLabels": {"abc": "abc"}}}, {"seedSelector": {"matchLabels": {"abc": "xyz"}}}),
        ({"tolerations": [{"key": "abc"}]}, {"tolerations": [{"key": "abc", "value": "def"}]}),
    ],
)
def test_what_contradicts_the_class_is_refused(own: Document, scheduling: Document) -> None:
    with pytest.raises(Forbidden, match=r"(of|by) the exposure class"):
        merged_spec(own, scheduling)


def test_a_shoot_without_a_class_stays_as_it_is() -> None:
    shoot = a_shoot()
    assert mutate(shoot, None, RelatedObjects(), user="ann").document["spec"].get("seedSelector") is None


def test_a_class_that_is_not_there_is_refused_for_a_new_shoot() -> None:
    shoot = a_shoot(spec={"exposureClassName": "public"})
    with pytest.raises(InvalidResource, match=r"spec\.exposureClassName: .*exposureclass public"):
        mutate(shoot, None, RelatedObjects(), user="ann")
    old: Document = {**shoot, "spec": {**shoot["spec"], "seedSelector": {}}}
    assert mutate(shoot, old, RelatedObjects(), user="ann").document["spec"]["exposureClassName"] == "public"
