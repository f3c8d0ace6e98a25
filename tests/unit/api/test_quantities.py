from fractions import Fraction

import pytest

from gardenbus.common.api.quantities import parse_quantity, whole_count


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("0", 0),
        ("250", 250),
        ("+3", 3),
        ("-3", -3),
        ("1500m", Fraction(3, 2)),
        ("100m", Fraction(1, 10)),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("2.5", Fraction(5, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1e-3", Fraction(1, 1000)),
        (4, 4),
        (2.5, Fraction(5, 2)),
        (1e3, 1000),
    ],
)
def test_a_quantity_is_an_exact_number(written: str | float, number: int | Fraction) -> None:
    assert parse_quantity(written) == number


@pytest.mark.parametrize(
    "written", ["", "foo", "1 k", "1K", "k", "1kk", "--1", "1e", "0x10", "1_000", "NaN", "٣", "9" * 100]
)
def test_what_is_no_quantity_is_named_in_the_error(written: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(written)


@pytest.mark.parametrize("written", [True, float("nan"), float("inf")])
def test_truth_and_infinity_are_no_quantities(written: float) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(written)


def test_a_fraction_of_a_place_admits_one_more() -> None:
    assert [whole_count(written) for written in ("1500m", "1k", "100m", 0, "-1")] == [2, 1000, 1, 0, -1]
