"""Versions of Kubernetes that a profile lists, and how those of a shoot may change."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardenbus.apiserver.domain.kubernetes_versions import version_problems
from gardenbus.apiserver.domain.related_objects import ProjectQuery
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.expirable_versions import newest_version
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.admissions import DEFAULT, related_queries
from tests.support.builders import a_cloudprofile, a_shoot, merged
from tests.support.related import related_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
VERSIONS = [
    {"version": "1.35.0", "classification": "preview"},
    {"version": "1.34.2", "classification": "supported"},
    {"version": "1.34.10"},
    {"version": "1.33.7", "expirationDate": "2026-07-01T00:00:00Z"},
    {"version": "1.33.9", "expirationDate": "2026-05-01T00:00:00Z"},
]
OFFER: Document = {
    "kubernetes": {"versions": VERSIONS},
    "machineImages": [
        {"name": "gardenlinux", "versions": [{"version": "1443.1.0"}, {"version": "1592.3.0"}]},
        {"name": "ubuntu", "versions": [{"version": "22.4.1"}, {"version": "24.4.0", "classification": "preview"}]},
    ],
}


@pytest.mark.parametrize(
    ("wanted", "newest"), [((), "1.34.10"), ((1, 34), "1.34.10"), ((1, 33), "1.33.7"), ((1, 35), None), ((2,), None)]
)
def test_the_newest_is_neither_a_preview_nor_expired(wanted: tuple[int, ...], newest: str | None) -> None:
    assert newest_version(VERSIONS, wanted, NOW) == newest


def test_a_deprecated_version_is_the_newest_where_it_is_accepted_and_no_other_is_left() -> None:
    deprecated = [{**one, "classification": "deprecated"} for one in VERSIONS[1:3]]
    assert newest_version(deprecated, (), NOW) is None
    assert newest_version(deprecated, (), NOW, accepts_deprecated=True) == "1.34.10"
    assert newest_version([*deprecated, VERSIONS[3]], (), NOW, accepts_deprecated=True) == "1.33.7"


@pytest.mark.parametrize("listed", [None, [], "1.34", [{"version": 1}, {}, None]])
def test_a_list_without_versions_has_no_newest(listed: Any) -> None:
    assert newest_version(listed, (), NOW) is None


def a_spec(version: str | None = None, *workers: Document) -> Document:
    return {"kubernetes": {"version": version} if version else {}, "provider": {"workers": list(workers)}}


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("1.33.7", "1.34.2", None),
        ("1.34.2", "1.34.10", None),
        ("1.34.2", "1.34", None),
        ("1.34.2", "1.34.1", "1.34.2 cannot be lowered to 1.34.1"),
        ("1.34.2", "1.33.9", "1.34.2 cannot be lowered to 1.33.9"),
        ("1.34.2", "1.33", "1.34.2 cannot be lowered to 1.33"),
        ("1.33.7", "1.35.0", "goes up by one minor version at a time: 1.34 comes after 1.33.7"),
        ("no version", "1.35.0", None),
    ],
)
def test_a_version_goes_up_one_minor_at_a_time(before: str, after: str, problem: str | None) -> None:
    found = [one.message for one in version_problems(a_spec(after), a_spec(before))]
    assert found == ([problem] if problem else [])


@pytest.mark.parametrize(
    ("pool", "problem"),
    [
        ("1.34.2", None),
        ("1.31.0", None),
        ("1.30.9", "1.30.9 is more than 3 minor versions behind the API server (1.34.2)"),
        ("1.34.3", "1.34.3 is above that of the API server, 1.34.2: raise that one first"),
    ],
)
def test_a_pool_is_not_ahead_of_its_api_server_nor_far_behind(pool: str, problem: str | None) -> None:
    spec = a_spec("1.34.2", {"name": "a", "kubernetes": {"version": pool}})
    found = [(one.field, one.message) for one in version_problems(spec, {})]
    assert found == ([("spec.provider.workers[0].kubernetes.version", problem)] if problem else [])


def test_a_pool_is_looked_at_when_its_api_server_moves_away() -> None:
    before = a_spec("1.34.2", {"name": "a", "kubernetes": {"version": "1.31.0"}})
    after = a_spec("1.35.0", {"name": "a", "kubernetes": {"version": "1.31.0"}})
    assert [one.field for one in version_problems(after, before)] == ["spec.provider.workers[0].kubernetes.version"]


def a_pool(version: str | None, strategy: str = "AutoRollingUpdate") -> Document:
    pool: Document = {"name": "a", "updateStrategy": strategy}
    return pool if version is None else {**pool, "kubernetes": {"version": version}}


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (a_pool("1.32.7"), a_pool("1.34.2"), None),
        (a_pool("1.32.7"), a_pool(None), None),
        (a_pool("1.33.7"), a_pool("1.32.7"), "1.33.7 cannot be lowered to 1.32.7"),
        (a_pool(None), a_pool("1.33.7"), "1.34.2 cannot be lowered to 1.33.7"),
        (a_pool(None), a_pool("1.34.2"), None),
        (
            a_pool("1.32.7", "AutoInPlaceUpdate"),
            a_pool("1.34.2", "AutoInPlaceUpdate"),
            "goes up by one minor version at a time: 1.33 comes after 1.32.7",
        ),
        (
            a_pool("1.32.7", "ManualInPlaceUpdate"),
            a_pool(None, "ManualInPlaceUpdate"),
            "goes up by one minor version at a time: 1.33 comes after 1.32.7",
        ),
        (a_pool("1.33.7", "AutoInPlaceUpdate"), a_pool("1.34.2", "AutoInPlaceUpdate"), None),
    ],
)
def test_a_pool_may_skip_minors_unless_its_machines_stay(
    before: Document, after: Document, problem: str | None
) -> None:
    found = [one.message for one in version_problems(a_spec("1.34.2", after), a_spec("1.34.2", before))]
    assert found == ([problem] if problem else [])


def test_a_pool_that_follows_its_control_plane_has_no_problem_of_its_own() -> None:
    found = [one.field for one in version_problems(a_spec("1.33.7", a_pool(None)), a_spec("1.34.2", a_pool(None)))]
    assert found == ["spec.kubernetes.version"]


class TestOfAShoot:
    def admitted(self, shoot: Document, old: Document | None = None) -> Document:
        related = related_of(a_cloudprofile(spec=OFFER))
        mutated = DEFAULT.mutate(shoot, old, related, user="ann", now=NOW).document
        DEFAULT.admit(mutated, old, related, user="ann", now=NOW)
        return mutated

    def test_a_new_shoot_gets_the_newest_version(self) -> None:
        spec = self.admitted(a_shoot(spec={"kubernetes": {"version": None}}))["spec"]
        assert spec["kubernetes"]["version"] == "1.34.10"
        assert spec["provider"]["workers"][0]["machine"]["image"] == {"name": "gardenlinux", "version": "1592.3.0"}

    def test_a_version_is_not_lowered(self) -> None:
        old = a_shoot(spec={"kubernetes": {"version": "1.34.2"}})
        with pytest.raises(InvalidResource, match=r"spec\.kubernetes\.version: 1\.34\.2 cannot be lowered to 1\.33\.7"):
            self.admitted(merged(old, {"spec": {"kubernetes": {"version": "1.33.7"}}}), old)

    def test_a_shoot_that_is_being_deleted_keeps_what_it_has(self) -> None:
        leaving = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
        old = merged(a_shoot(spec={"kubernetes": {"version": "1.34.2"}}), leaving)
        with pytest.raises(Forbidden, match=r"spec\.kubernetes: cannot be changed while the shoot is being deleted"):
            self.admitted(merged(old, {"spec": {"kubernetes": {"version": "1.35.1"}}}), old)

    def test_a_change_of_something_else_reads_no_profile(self) -> None:
        old = a_shoot()
        assert related_queries(merged(old, {"spec": {"purpose": "testing"}}), old) == (ProjectQuery("garden-dev"),)
