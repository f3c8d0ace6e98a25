"""Subjects say who asks for what."""

import pytest

from gardenbus.apiserver.domain.request_subjects import (
    ListTarget,
    RequestSubject,
    key_of_tail,
    list_target_of_tail,
    parse_report_subject,
    parse_request_subject,
)
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.api.users import ANONYMOUS
from gardenbus.common.errors import BadRequest, Unsupported

SUBJECTS = Subjects("garden")


def test_a_subject_may_name_its_speaker() -> None:
    assert parse_request_subject("garden.as.ann.api.get.shoot.dev.a.b", SUBJECTS) == RequestSubject(
        "ann", "api.get.shoot.dev.a.b", "insider"
    )
    assert parse_request_subject("garden.out.ann.apply", SUBJECTS) == RequestSubject("ann", "apply", "outsider")
    assert parse_request_subject("garden.apply", SUBJECTS) == RequestSubject(ANONYMOUS, "apply", "nobody")


def test_a_dot_of_a_user_is_written_so_that_it_does_not_part_the_subject() -> None:
    subject = SUBJECTS.as_user("ann@example.org", "apply")
    assert subject == "garden.as.ann@example%2Eorg.apply"
    assert parse_request_subject(subject, SUBJECTS) == RequestSubject("ann@example.org", "apply", "insider")


def test_an_insider_is_whom_a_subject_names_that_nobody_outside_publishes_on() -> None:
    subjects = ("garden.apply", "garden.as.autoscaler.api.scale", "garden.out.autoscaler.api.scale")
    assert [parse_request_subject(each, SUBJECTS).is_insider for each in subjects] == [True, True, False]


@pytest.mark.parametrize("user", ["*", ">", "Ann", "-", "a" * 254, "a\u00e9", "%"])
def test_a_subject_without_a_possible_user_is_no_request(user: str) -> None:
    with pytest.raises(BadRequest, match="no user"):
        parse_request_subject(f"garden.as.{user}.apply", SUBJECTS)


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
    assert key_of_tail(tail) == key


@pytest.mark.parametrize("tail", ["shoot", "shoot.dev", "shoot.dev.", "seed", "seed._."])
def test_an_object_without_name_is_refused(tail: str) -> None:
    with pytest.raises(BadRequest):
        key_of_tail(tail)


def test_a_list_is_of_a_kind_in_one_namespace_or_all() -> None:
    assert list_target_of_tail("shoots") == ListTarget("shoot", None)
    assert list_target_of_tail("shoot.dev") == ListTarget("shoot", "dev")
    assert list_target_of_tail("seed._") == ListTarget("seed", None)
    with pytest.raises(BadRequest):
        list_target_of_tail("shoot.dev.apollo")
    with pytest.raises(Unsupported):
        list_target_of_tail("spaceship")


def test_a_kind_that_is_only_stored_is_known_when_there_is_one() -> None:
    assert key_of_tail("widget.dev.a", ["widget"]) == ObjectKey("widget", "dev", "a")


def test_a_report_says_whose_it_is() -> None:
    assert parse_report_subject("garden.report.aws.shoot.dev.apollo", SUBJECTS) == (
        "aws",
        ObjectKey("shoot", "dev", "apollo"),
    )
    for subject in ("garden.report.aws.shoot", "garden.as.ann.apply.x", "garden.apply"):
        with pytest.raises(BadRequest):
            parse_report_subject(subject, SUBJECTS)
