"""Rows in an order that is kept: the same as sorting them anew after each change."""

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.dashboard.domain import ordered_rows
from gardenbus.dashboard.domain.ordered_rows import OrderedRows

rows = st.tuples(st.integers(0, 5), st.integers(0, 40))
steps = st.lists(st.tuples(st.sampled_from(["put", "remove", "replace"]), rows, rows), max_size=120)


def order(row: tuple[int, int]) -> tuple[int, int]:
    return row


@given(steps, st.integers(0, 50), st.integers(1, 20))
def test_pages_are_those_of_the_sorted_rows(
    taken: list[tuple[str, tuple[int, int], tuple[int, int]]], at: int, limit: int
):
    largest = ordered_rows.LARGEST_CHUNK
    ordered_rows.LARGEST_CHUNK = 4
    try:
        kept, expected = OrderedRows(order), set[tuple[int, int]]()
        for step, one, other in taken:
            match step:
                case "put":
                    kept.put(one)
                    expected.add(one)
                case "remove":
                    assert kept.remove(one) == (one in expected)
                    expected.discard(one)
                case _:
                    kept.replace(one, other)
                    if one in expected:
                        expected = (expected - {one}) | {other}
        ordered = sorted(expected)
        assert (list(kept), len(kept)) == (ordered, len(ordered))
        assert kept.page(at, limit) == ordered[at : at + limit]
        assert kept.page_from_end(at, limit) == ordered[::-1][at : at + limit]
    finally:
        ordered_rows.LARGEST_CHUNK = largest
