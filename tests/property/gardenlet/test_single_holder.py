"""However rounds interleave, clocks stand still and processes pause: of two gardenlets one at most may act."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.gardenlet.domain.lease import ObservedLease, StandBy, decide_lease

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GRACE_PERIOD = timedelta(seconds=20)

actions = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.integers(1, 25)),
        st.tuples(st.just("look"), st.integers(0, 1)),
        st.tuples(st.just("publish"), st.integers(0, 1)),
        st.tuples(st.just("expire"), st.just(0)),
    ),
    max_size=60,
)


@given(actions)
def test_two_gardenlets_are_never_active_together(actions: list[tuple[str, int]]) -> None:
    now, last, sequence = START, None, 0
    names = ["a", "b"]
    expected: list[int | None] = [None, None]
    decided_at = [START, START]
    renewed_at: list[datetime | None] = [None, None]
    for action, number in actions:
        match action:
            case "pass":
                now += timedelta(seconds=number)
            case "expire":
                if last is not None and now - last.at > 2 * GRACE_PERIOD:
                    sequence += 1
                    last = ObservedLease(sequence, "", now)
            case "look":
                held = renewed_at[number] is not None
                decision = decide_lease(last, identity=names[number], is_held=held, now=now, grace_period=GRACE_PERIOD)
                if isinstance(decision, StandBy):
                    expected[number] = renewed_at[number] = None
                else:
                    expected[number], decided_at[number] = decision.expected, now
            case _:
                wanted, expected[number] = expected[number], None
                if wanted is None:
                    continue
                if wanted != (last.sequence if last else 0):
                    renewed_at[number] = None
                    continue
                sequence += 1
                last = ObservedLease(sequence, names[number], now)
                renewed_at[number] = decided_at[number]
        active = [
            name for name, at in zip(names, renewed_at, strict=True) if at is not None and now - at < GRACE_PERIOD
        ]
        assert len(active) < 2
