"""Rows in an order that is kept: the same as sorting them anew after each change."""

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.dashboard.domain import ordered_rows
from gardenbus.dashboard.domain.ordered_rows import OrderedRows

rows = st.tuples(st.integers(0, 5), st.integers(0, 40))
Row = tuple[int, int, int]
"""A row's place, and what its text ends with."""

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


words = st.text("ab\n", max_size=3).filter(lambda word: "\n" not in word[:-1])


@given(steps, st.lists(words, max_size=3), st.integers(1, 2), st.integers(0, 20))
def test_words_are_found_where_looking_at_each_row_finds_them(
    taken: list[tuple[str, tuple[int, int], tuple[int, int]]], wanted: list[str], texts: int, many: int
):
    def first(row: Row) -> str:
        return "ab"[row[0] % 2] * (row[0] % 4)

    def second(row: Row) -> str:
        return f"{row[1]:b}".translate({48: "a", 49: "b"}) + "a" * row[2]

    before = ordered_rows.LARGEST_CHUNK, ordered_rows.MANY
    ordered_rows.LARGEST_CHUNK, ordered_rows.MANY = 4, many
    try:
        kept, expected = OrderedRows(lambda row: row[:2], (first, second)), dict[tuple[int, int], Row]()
        for number, (step, one, other) in enumerate(taken):
            new, moved = (*one, number % 3), (*other, number % 3)
            match step:
                case "put":
                    kept.put(new)
                    expected[one] = new
                case "remove":
                    kept.remove(new)
                    expected.pop(one, None)
                case _:
                    kept.replace(new, moved)
                    if expected.pop(one, None):
                        expected[other] = moved
            if number % 5 == 0:
                assert all(step is None for step in kept.join_texts())
        looked_at = (first, second)[:texts]
        assert list(kept.containing(wanted, texts)) == [
            row
            for row in sorted(expected.values())
            if all(any(word in text(row) + "\n" for text in looked_at) for word in wanted)
        ]
    finally:
        ordered_rows.LARGEST_CHUNK, ordered_rows.MANY = before
