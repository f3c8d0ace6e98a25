from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gardenbus.cli.simulate.scheduling import simulate
from gardenbus.common.api.document import Document
from gardenbus.common.errors import SettingsInvalid
from gardenbus.scheduling.filters.table import RULES
from gardenbus.scheduling.installed_filters import load_filters
from gardenbus.scheduling.user_filters import ENTRY_POINT_GROUP, filter_of
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot


class GreenOnly:
    """A filter as a user would write it: shoots annotated `green` want seeds labelled `green`."""

    name = "green-only"

    def shoot_input(self, shoot: Document) -> Any:
        annotations: Mapping[str, str] = shoot["metadata"].get("annotations") or {}
        return "green" in annotations

    def filter(self, shoot_input: Any, seed: Document) -> str | None:
        return "it is not green" if shoot_input and "green" not in (seed["metadata"].get("labels") or {}) else None


def test_a_users_own_filter_decides_along_with_ours() -> None:
    documents = [a_seed("a"), a_seed("b", metadata={"labels": {"green": "true"}}), a_cloudprofile(), a_project()]
    green = a_shoot("green", metadata={"annotations": {"green": ""}})
    placements = simulate([*documents, green, a_shoot("any")], filters=[GreenOnly()])
    assert [placement.seed for placement in placements] == ["b", "a"]
    (rejected,) = simulate([documents[0], *documents[2:], green], filters=[GreenOnly()])
    assert rejected.message is not None
    assert "it is not green" in rejected.message


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """Put a distribution with one entry point on the path, as pip would."""
    (folder / "my_filters.py").write_text(
        "class NoTesting:\n"
        "    name = 'no-testing'\n"
        "    def shoot_input(self, shoot):\n"
        "        return shoot['spec'].get('purpose')\n"
        "    def filter(self, shoot_input, seed):\n"
        "        return 'not for testing' if shoot_input == 'testing' else None\n"
    )
    distribution = folder / "my_filters-1.0.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: my-filters\nVersion: 1.0\n")
    (distribution / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\nno-testing = {target}\n")
    monkeypatch.syspath_prepend(str(folder))  # pyright: ignore[reportUnknownMemberType]


def test_a_filter_is_found_through_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, "my_filters:NoTesting")
    filters = load_filters()
    documents = [a_seed(), a_cloudprofile(), a_project(), a_shoot("a"), a_shoot("b", spec={"purpose": "testing"})]
    assert [placement.seed for placement in simulate(documents, filters=filters)] == ["aws-eu1", None]


class Older:
    """A filter with the method names of earlier versions."""

    name = "older"

    def wish(self, shoot: Document) -> Any:
        return shoot["spec"].get("purpose")

    def refuse(self, wish: Any, seed: Document) -> str | None:
        return "not for testing" if wish == "testing" else None


def test_a_filter_with_the_names_of_earlier_versions_acts() -> None:
    older = filter_of(Older, frozenset())
    documents = [a_seed(), a_cloudprofile(), a_project(), a_shoot("a"), a_shoot("b", spec={"purpose": "testing"})]
    assert [placement.seed for placement in simulate(documents, filters=[older])] == ["aws-eu1", None]


def test_a_filter_with_the_names_of_earlier_versions_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "tests.unit.scheduling.test_user_filters:Older")
    with pytest.warns(FutureWarning, match="the filter older: wish and refuse are named shoot_input and filter"):
        assert [each.name for each in load_filters()] == ["older"]


def test_a_filter_is_an_object_a_class_or_what_makes_one() -> None:
    ready = GreenOnly()
    assert filter_of(ready, frozenset()) is ready
    for made in (GreenOnly, lambda: ready):
        assert filter_of(made, frozenset()).name == "green-only"


@pytest.mark.parametrize("loaded", [5, "x", object, lambda: None, type("Nameless", (GreenOnly,), {"name": ""})])
def test_what_is_no_filter_is_refused(loaded: object) -> None:
    with pytest.raises(ValueError, match=r"no filter|must be a text"):
        filter_of(loaded, frozenset())


def test_a_filter_has_a_name_of_its_own() -> None:
    for taken in (RULES, frozenset({"green-only"})):
        renamed = type("Renamed", (GreenOnly,), {"name": min(taken)})
        with pytest.raises(ValueError, match="no other rule has"):
            filter_of(renamed, taken)


def test_a_filter_that_cannot_be_loaded_keeps_the_scheduler_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "my_filters:Missing")
    with pytest.raises(SettingsInvalid, match="no-testing = my_filters:Missing"):
        load_filters()
