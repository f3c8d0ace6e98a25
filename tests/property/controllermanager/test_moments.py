"""Instants of objects: the soonest first, and the last that was set counts."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.keys import ObjectKey
from gardenbus.controllermanager.domain.moments import Moments

START = datetime(2026, 3, 1, tzinfo=UTC)


def key(number: int) -> ObjectKey:
    return ObjectKey("shoot", "garden-dev", f"shoot-{number}")


@given(
    st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 50))), max_size=40), st.integers(0, 50)
)
def test_what_is_due_is_as_in_a_plain_mapping(steps: list[tuple[int, int | None]], until: int) -> None:
    moments, model = Moments(), dict[ObjectKey, int]()
    for number, minute in steps:
        if minute is None:
            moments.forget(key(number))
            model.pop(key(number), None)
        else:
            moments.set(key(number), START + timedelta(minutes=minute))
            model[key(number)] = minute
    due = list(moments.due(START + timedelta(minutes=until)))
    assert sorted(due) == sorted(each for each, minute in model.items() if minute <= until)
    assert [model[each] for each in due] == sorted(model[each] for each in due)
    assert len(moments) == len(model) - len(due)
    assert list(moments.due(START + timedelta(minutes=until))) == []
