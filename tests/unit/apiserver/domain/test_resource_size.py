"""Sizes of objects: the first limit that names a resource holds, for all but those who are unrestricted."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.admission import NOTHING_RELATED, Admission
from gardenbus.apiserver.domain.plugins.resource_size import measured, plugin
from gardenbus.common.api.configuration.resource_sizes import ResourceSizes, SizeLimit, UnrestrictedSubject
from gardenbus.common.api.document import Document, encode
from gardenbus.common.errors import Forbidden
from tests.support.builders import a_project, a_shoot, merged

GARDEN = ("core.gardener.cloud",)
SHOOT = a_shoot(metadata={"annotations": {"a": "x" * 500}})
SIZE = measured(SHOOT)


def _limit(size: int, resource: str = "shoots", group: str = GARDEN[0], version: str = "*") -> SizeLimit:
    return SizeLimit(api_groups=(group,), api_versions=(version,), resources=(resource,), size=size)


def _admit(*limits: SizeLimit, user: str = "ann", old: Document | None = None, **sizes: Any) -> tuple[str, ...]:
    admission = Admission((plugin(ResourceSizes(limits=limits, **sizes)),))
    admission.admit(SHOOT, old, NOTHING_RELATED, user=user)
    return admission.mutate(SHOOT, old, NOTHING_RELATED, user=user).warnings


def test_status_and_managed_fields_are_not_measured() -> None:
    written = {**SHOOT, "status": {"a": 1}, "metadata": {**SHOOT["metadata"], "managedFields": [{"manager": "x"}]}}
    assert measured(written) == SIZE == len(encode({**SHOOT}))


def test_one_byte_too_many_is_refused_with_both_sizes() -> None:
    _admit(_limit(SIZE))
    with pytest.raises(Forbidden, match=f"shoots 'apollo' has {SIZE} bytes; the maximum is {SIZE - 1}"):
        _admit(_limit(SIZE - 1))


@pytest.mark.parametrize(
    "limits",
    [
        [_limit(1, "seeds")],
        [_limit(1, group="")],
        [_limit(1, version="v1")],
        [_limit(SIZE), _limit(1)],
        [_limit(9 * SIZE, "*"), _limit(1)],
    ],
)
def test_the_first_limit_that_names_the_resource_holds(limits: list[SizeLimit]) -> None:
    _admit(*limits)


@pytest.mark.parametrize("limit", [_limit(1, "*"), _limit(1, group="*"), _limit(1, version="v1beta1")])
def test_a_limit_names_all_by_a_star_and_one_by_its_name(limit: SizeLimit) -> None:
    with pytest.raises(Forbidden):
        _admit(_limit(1, "seeds"), limit)


def test_for_unrestricted_subjects_there_is_no_limit() -> None:
    subjects = (
        UnrestrictedSubject(kind="User", name="ann"),
        UnrestrictedSubject(kind="ServiceAccount", namespace="garden", name="robot"),
        UnrestrictedSubject(kind="Group", name="gardener.cloud:system:seeds"),
        UnrestrictedSubject(kind="Group", name="system:serviceaccounts:ci"),
    )
    for user in ("ann", "system:serviceaccount:garden:robot", "seed:aws", "system:serviceaccount:ci:any"):
        _admit(_limit(1), user=user, unrestricted=subjects)
    with pytest.raises(Forbidden):
        _admit(_limit(1), user="robot", unrestricted=subjects)


def test_a_number_of_objects_is_a_condition_of_their_creation() -> None:
    limits = (SizeLimit(api_groups=GARDEN, api_versions=("*",), resources=("shoots",), count=3),)
    subjects = (UnrestrictedSubject(kind="Group", name="gardener.cloud:system:seeds"),)
    admission = Admission((plugin(ResourceSizes(limits=limits, unrestricted=subjects)),))
    (guard,) = admission.write_guards(SHOOT, None, NOTHING_RELATED, user="ann")
    assert (guard.kind, guard.name, guard.most) == ("count", "shoot", 3)
    assert guard.message == "shoots 'apollo': the maximum is 3"
    assert admission.write_guards(SHOOT, None, NOTHING_RELATED, user="seed:aws") == ()
    assert admission.write_guards(SHOOT, SHOOT, NOTHING_RELATED, user="ann") == ()
    assert admission.write_guards(a_project(), None, NOTHING_RELATED, user="ann") == ()


def test_with_operation_mode_log_there_is_a_warning_instead() -> None:
    (warning,) = _admit(_limit(1), mode="log")
    assert "the maximum is 1" in warning
    assert _admit(_limit(SIZE + 9999), mode="log") == ()


def test_what_is_being_deleted_can_go_whatever_its_size() -> None:
    _admit(_limit(1), old=a_shoot(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))


SECRET: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "dev"}}
ROBOT = "system:serviceaccount:unrestricted:"
CONFIGURED = ResourceSizes(
    limits=(
        _limit(1, "projects", "*"),
        _limit(2**20, "secrets", "", "v1"),
        _limit(SIZE, version="v1beta1"),
        _limit(1, version="v1alpha1"),
    ),
    unrestricted=(
        UnrestrictedSubject(kind="User", name="unrestricted"),
        UnrestrictedSubject(kind="ServiceAccount", namespace="unrestricted", name="robot"),
    ),
)


@pytest.mark.parametrize(
    ("document", "user", "is_taken"),
    [
        (SHOOT, "ann", True),
        ({**SHOOT, "status": {"lastOperation": {"description": "a long description"}}}, "ann", True),
        (merged(SHOOT, {"metadata": {"managedFields": [{"manager": "m", "operation": "Update"}]}}), "ann", True),
        (merged(SHOOT, {"metadata": {"annotations": {"b": ""}}}), "ann", False),
        (SHOOT, "unrestricted", True),
        (SECRET, "ann", True),
        ({**SECRET, "data": {"a": "x" * 2**20}}, "ann", False),
        ({**SECRET, "kind": "ConfigMap", "data": {"a": "x" * 2**20}}, "ann", True),
        (a_project(), "ann", False),
        (a_project(), "unrestricted", True),
        (a_project(), f"{ROBOT}robot", True),
        (a_project(), f"{ROBOT}other", False),
    ],
)
def test_gardeners_cases(document: Document, user: str, is_taken: bool) -> None:
    admission = Admission((plugin(CONFIGURED),))
    for old in (None, document):
        if is_taken:
            admission.admit(document, old, NOTHING_RELATED, user=user)
        else:
            with pytest.raises(Forbidden, match="the maximum is"):
                admission.admit(document, old, NOTHING_RELATED, user=user)
