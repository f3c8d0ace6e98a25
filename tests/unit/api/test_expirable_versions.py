"""Versions of a profile: what an update goes to. Cases as in Gardener's `v1beta1/helper/cloudprofile_test.go`."""

from datetime import UTC, datetime

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.expirable_versions import consecutive_minor, newest_above, next_higher

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def listed(*versions: str) -> list[Document]:
    """Each a version; `!` in front: expired, `~`: deprecated, `?`: a preview."""
    marks: dict[str, Document] = {
        "!": {"expirationDate": "2026-05-01T00:00:00Z"},
        "~": {"classification": "deprecated"},
        "?": {"classification": "preview"},
    }
    return [{"version": one.lstrip("!~?"), **marks.get(one[0], {})} for one in versions]


@pytest.mark.parametrize(
    ("versions", "current", "same", "expected"),
    [
        (["1.1.1", "1.1.2", "1.2.0"], "1.1.1", 2, "1.1.2"),
        (["1.1.1", "1.1.2", "1.1.10"], "1.1.1", 2, "1.1.10"),
        (["1.1.1", "1.1.2", "?1.1.3"], "1.1.1", 2, "1.1.2"),
        (["1.1.1", "!1.1.2"], "1.1.1", 2, None),
        (["1.1.1", "1.1.2", "~1.1.3"], "1.1.1", 2, "1.1.2"),
        (["1.1.1", "~1.1.2", "~1.1.3"], "1.1.1", 2, "1.1.3"),
        (["1.1.2"], "1.1.2", 2, None),
        (["1.1.1"], "1.1.2", 2, None),
        (["1.1.1", "1.2.0", "2.0.0"], "1.1.1", 1, "1.2.0"),
        (["1.1.1", "1.2.0", "2.0.0"], "1.1.1", 0, "2.0.0"),
        (["1.1.1", "junk", "2"], "1.1.1", 0, "2"),
    ],
)
def test_an_automatic_update(versions: list[str], current: str, same: int, expected: str | None) -> None:
    assert newest_above(listed(*versions), current, NOW, same=same) == expected


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (["1.2.0", "1.2.3", "1.3.9"], "1.2.3"),
        (["1.2.0", "!1.2.3"], "1.2.0"),
        (["!1.2.0", "!1.2.3", "1.3.0"], "1.2.3"),
        (["?1.2.0", "1.3.0", "2.2.0"], None),
    ],
)
def test_a_forced_update_of_kubernetes_leaves_out_no_minor(versions: list[str], expected: str | None) -> None:
    assert consecutive_minor(listed("!1.1.1", *versions), "1.1.1", NOW) == expected


@pytest.mark.parametrize(
    ("versions", "position", "expected"),
    [
        (["1.2.0", "1.2.1", "1.3.0"], 1, "1.2.1"),
        (["1.4.0", "1.4.1", "1.5.0"], 1, "1.4.1"),
        (["!1.2.0", "1.4.1"], 1, "1.2.0"),
        (["!1.5.0", "1.4.1"], 1, "1.4.1"),
        (["!1.2.0"], 1, "1.2.0"),
        (["?1.2.0", "2.0.0"], 1, None),
        (["2.0.0", "2.1.0", "3.0.0"], 0, "2.1.0"),
        (["!2.0.0", "4.0.0"], 0, "2.0.0"),
        ([], 0, None),
    ],
)
def test_a_forced_update_of_an_image_goes_to_the_next_that_there_is(
    versions: list[str], position: int, expected: str | None
) -> None:
    assert next_higher(listed("!1.1.1", *versions), "1.1.1", NOW, position=position) == expected
