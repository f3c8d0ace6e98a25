from collections.abc import Mapping
from typing import Any

from gardenbus.common.resources.document import Document
from gardenbus.scheduler.simulate import simulate
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot


class GreenOnly:
    """A filter as a user would write it: shoots annotated `green` want seeds labelled `green`."""

    name = "green-only"

    def wish(self, shoot: Document) -> Any:
        annotations: Mapping[str, str] = shoot["metadata"].get("annotations") or {}
        return "green" in annotations

    def refuse(self, wish: Any, seed: Document) -> str | None:
        return "it is not green" if wish and "green" not in (seed["metadata"].get("labels") or {}) else None


def test_a_users_own_filter_decides_along_with_ours() -> None:
    documents = [a_seed("a"), a_seed("b", metadata={"labels": {"green": "true"}}), a_cloudprofile(), a_project()]
    green = a_shoot("green", metadata={"annotations": {"green": ""}})
    placements = simulate([*documents, green, a_shoot("any")], filters=[GreenOnly()])
    assert [placement.seed for placement in placements] == ["b", "a"]
    (refused,) = simulate([documents[0], *documents[2:], green], filters=[GreenOnly()])
    assert refused.message is not None
    assert "it is not green" in refused.message
