"""A complaint of the server's is logged once a minute, each for itself."""

import pytest

from gardenbus.common.adapters.nats import complaints
from gardenbus.common.adapters.nats.complaints import Complaints


def test_each_is_due_again_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(complaints, "monotonic", lambda: now[0])
    received = Complaints()
    assert [received.is_due("a"), received.is_due("a"), received.is_due("b")] == [True, False, True]
    now[0] += 59.0
    assert not received.is_due("a")
    now[0] += 1.0
    assert received.is_due("a")


def test_whoever_is_refused_on_ever_other_subjects_fills_no_memory() -> None:
    received = Complaints()
    assert all(received.is_due(str(number)) for number in range(3000))
    assert len(received._logged) <= 1000  # pyright: ignore[reportPrivateUsage]
