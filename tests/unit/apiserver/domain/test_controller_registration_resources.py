"""ControllerRegistrationResources: one primary for each kind and type."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.related_objects import KindQuery, RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.errors import Forbidden
from tests.support.admissions import admit, related_queries
from tests.support.builders import CORE

PRIMARY = {"kind": "Infrastructure", "type": "aws"}
SECOND = {**PRIMARY, "primary": False}
ELSE = {"kind": "Network", "type": "aws"}
OTHER_TYPE = {"kind": "Infrastructure", "type": "gcp"}


def a_registration(name: str, *resources: Document) -> Document:
    return {
        "apiVersion": CORE,
        "kind": "ControllerRegistration",
        "metadata": {"name": name},
        "spec": {"resources": list(resources)},
    }


def among(*registrations: Document) -> RelatedObjects:
    return RelatedObjects(all_of={"controllerregistration": registrations})


@pytest.mark.parametrize("given", [(SECOND,), (ELSE,), (OTHER_TYPE,), (SECOND, {**ELSE, "primary": True}), ()])
def test_what_nobody_else_is_primary_for_is_taken(given: Any) -> None:
    admit(a_registration("two", *given), None, among(a_registration("one", PRIMARY)))


@pytest.mark.parametrize("others", [(), (a_registration("one", SECOND),), (a_registration("one"),)])
def test_the_first_primary_is_taken_also_beside_secondary_ones(others: tuple[Document, ...]) -> None:
    admit(a_registration("two", PRIMARY), None, among(*others))


@pytest.mark.parametrize("given", [(PRIMARY,), ({**PRIMARY, "primary": True},), ({**PRIMARY, "primary": None},)])
def test_a_second_primary_is_refused(given: Any) -> None:
    match = r"spec\.resources\[1\]: the ControllerRegistration one is primary for Infrastructure of the type aws"
    with pytest.raises(Forbidden, match=match):
        admit(a_registration("two", ELSE, *given), None, among(a_registration("one", PRIMARY)))


def test_one_does_not_stand_in_its_own_way_nor_in_that_of_a_primary() -> None:
    one = a_registration("one", PRIMARY)
    admit(a_registration("one", PRIMARY, ELSE), one, among(one, a_registration("two", SECOND)))


def test_becoming_primary_is_checked_and_only_changes_of_resources_are() -> None:
    before, after = a_registration("two", SECOND), a_registration("two", PRIMARY)
    with pytest.raises(Forbidden):
        admit(after, before, among(a_registration("one", PRIMARY), before))
    assert related_queries(after, before) == (KindQuery("controllerregistration"),)
    assert related_queries(after, after) == ()
    admit(after, after, among(a_registration("one", PRIMARY)))
