"""Subjects say who asks for what."""

import pytest

from gardenbus.apiserver.reconcilers.speaking import (
    ANONYMOUS,
    Spoken,
    Wanted,
    key_in,
    list_in,
    reporter_and_key,
    spoken,
)
from gardenbus.common.errors import BadRequest, Unsupported
from gardenbus.common.resources.keys import ObjectKey, Subjects

SUBJECTS = Subjects("garden")


def test_a_subject_may_name_its_speaker() -> None:
    assert spoken("garden.as.ann.api.get.shoot.dev.a.b", SUBJECTS) == Spoken("ann", "api.get.shoot.dev.a.b")
    assert spoken("garden.apply", SUBJECTS) == Spoken(ANONYMOUS, "apply")


@pytest.mark.parametrize(
    ("tail", "key"),
    [
        ("shoot.dev.apollo", ObjectKey("shoot", "dev", "apollo")),
        ("Shoots.dev.apollo", ObjectKey("shoot", "dev", "apollo")),
        ("cp._.a.dotted.name", ObjectKey("cloudprofile", "", "a.dotted.name")),
        ("seed.aws", ObjectKey("seed", "", "aws")),
        ("configmap.garden.a.b", ObjectKey("configmap", "garden", "a.b")),
    ],
)
def test_an_object_is_named_in_a_subject(tail: str, key: ObjectKey) -> None:
    assert key_in(tail) == key


@pytest.mark.parametrize("tail", ["shoot", "shoot.dev", "shoot.dev.", "seed", "seed._."])
def test_an_object_without_name_is_refused(tail: str) -> None:
    with pytest.raises(BadRequest):
        key_in(tail)


def test_a_list_is_of_a_kind_in_one_namespace_or_all() -> None:
    assert list_in("shoots") == Wanted("shoot", None)
    assert list_in("shoot.dev") == Wanted("shoot", "dev")
    assert list_in("seed._") == Wanted("seed", None)
    with pytest.raises(BadRequest):
        list_in("shoot.dev.apollo")
    with pytest.raises(Unsupported):
        list_in("spaceship")


def test_a_kind_that_is_only_stored_is_known_when_there_is_one() -> None:
    assert key_in("widget.dev.a", ["widget"]) == ObjectKey("widget", "dev", "a")


def test_a_report_says_whose_it_is() -> None:
    assert reporter_and_key("garden.report.aws.shoot.dev.apollo", SUBJECTS) == (
        "aws",
        ObjectKey("shoot", "dev", "apollo"),
    )
    for subject in ("garden.report.aws.shoot", "garden.as.ann.apply.x", "garden.apply"):
        with pytest.raises(BadRequest):
            reporter_and_key(subject, SUBJECTS)
