from datetime import timedelta

import pytest

from gardenbus.common.api.durations import parse_duration


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("10s", 10),
        ("1m30s", 90),
        ("1.5h", 5400),
        ("200ms", 0.2),
        ("1h1m1s1ms", 3661.001),
        ("0", 0),
        (0, 0),
        ("-2s", -2),
        (".5s", 0.5),
        ("1.s", 1),
        ("1500us", 0.0015),
        ("10µs", 1e-5),
    ],
)
def test_durations_are_read_as_go_reads_them(value: object, seconds: float) -> None:
    assert parse_duration(value) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value",
    ["", "10", "s", "10 s", "ten", "10s ", "1d", "--1s", "1e3s", "٣s", 5, 0.0, False, None, "9" * 50 + "h", "9" * 90],
)
def test_what_go_does_not_read_as_a_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(value)
