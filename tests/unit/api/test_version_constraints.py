"""Constraints of images on the kubelets that they run with."""

import pytest

from gardenbus.common.api.garden.version_constraints import satisfies


@pytest.mark.parametrize(
    ("constraint", "version", "expected"),
    [
        (">= 1.26", (1, 26, 0), True),
        (">= 1.26", (1, 25, 9), False),
        (">=1.26,<1.30", (1, 29, 9), True),
        (">= 1.26, < 1.30", (1, 30, 0), False),
        (">= 1.26 < 1.30", (1, 30, 0), False),
        ("< 1.26 || >= 1.30", (1, 31, 4), True),
        ("< 1.26 || >= 1.30", (1, 28, 4), False),
        ("> 1.26", (1, 26, 5), False),
        ("<= 1.26", (1, 26, 5), True),
        ("~1.26.3", (1, 26, 4), True),
        ("~1.26.3", (1, 26, 2), False),
        ("~1.26.3", (1, 27, 0), False),
        ("^1.26", (1, 40, 0), True),
        ("^1.26", (2, 0, 0), False),
        ("1.26.x", (1, 26, 9), True),
        ("= v1.26.9", (1, 26, 9), True),
        ("!= 1.26", (1, 26, 9), False),
        ("*", (1, 26, 9), True),
        ("", (1, 26, 9), False),
        ("newer", (1, 26, 9), False),
    ],
)
def test_a_version_is_within_a_constraint_or_not(constraint: str, version: tuple[int, ...], expected: bool) -> None:
    assert satisfies(version, constraint) is expected
