"""Functions by samples and by calls."""

import pytest

from gardenbus.bench.guard.profiles import RedisCall, TimeSpan, by_calls, by_samples, sampled


def test_only_samples_within_a_window_count() -> None:
    samples = [(0.5, 0), (1.5, 0), (1.6, 1), (2.5, 1), (3.5, 1)]
    assert sampled(["a", "b"], samples, [TimeSpan(1, 2), TimeSpan(3, 4)]) == {"a": 1, "b": 2}


def test_a_function_has_its_share_of_what_the_process_took() -> None:
    assert by_samples({"a": 3, "b": 1}, 8.0) == {"a": 6.0, "b": 2.0}
    assert by_samples({}, 8.0) == {}


def test_calls_of_redis_have_their_share_by_time() -> None:
    calls = [RedisCall("put_many", 300.0), RedisCall("bind", 50.0), RedisCall("bind", 50.0)]
    assert by_calls(calls, 4.0) == pytest.approx({"put_many": 3.0, "bind": 1.0})
    assert by_calls([], 4.0) == {}


def test_a_call_that_was_interrupted_counts_for_a_few_of_its_kind() -> None:
    calls = [RedisCall("bind", 10.0)] * 9 + [RedisCall("bind", 20_000.0), RedisCall("put_many", 130.0)]
    assert by_calls(calls, 2.0) == pytest.approx({"bind": 1.0, "put_many": 1.0})
