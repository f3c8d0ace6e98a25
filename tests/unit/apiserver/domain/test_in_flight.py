"""What each user may have in flight."""

import contextlib

import pytest

from gardenbus.apiserver.domain.in_flight import InFlight
from gardenbus.apiserver.domain.responses import error_response
from gardenbus.common.api.budgets import Budget, OverBudget
from gardenbus.common.errors import TooManyRequests

TEN = Budget(bytes_in_flight=10, requests_in_flight=3)


def test_what_one_user_has_in_flight_is_no_others() -> None:
    limit = InFlight()
    with limit.counted("ann", 6, TEN), limit.counted("ann", 4, TEN), limit.counted("bob", 10, TEN):
        with pytest.raises(OverBudget, match=r"'ann' .* bytesInFlight \(10\)"), limit.counted("ann", 1, TEN):
            pass
        with pytest.raises(OverBudget, match="'bob'"), limit.counted("bob", 1, TEN):
            pass
        assert limit.held_by("ann") == (2, 10)
    with limit.counted("ann", 10, TEN):
        pass
    assert limit.users() == frozenset()


def test_a_user_has_no_more_requests_in_flight_than_its_budget() -> None:
    limit = InFlight()
    with limit.counted("ann", 0, TEN), limit.counted("ann", 0, TEN), limit.counted("ann", 0, TEN):
        with pytest.raises(OverBudget) as raised, limit.counted("ann", 0, TEN):
            pass
        with limit.counted("ann", 1, TEN, requests=0):
            pass
    body = error_response(raised.value).error
    assert (body["code"], body["limit"], body["retryAfterSeconds"]) == (429, "requestsInFlight", 1)


def test_a_request_that_fails_or_is_rejected_is_in_flight_no_more() -> None:
    limit = InFlight()
    with pytest.raises(ZeroDivisionError), limit.counted("ann", 10, TEN):
        raise ZeroDivisionError
    with limit.counted("ann", 9, TEN):
        for _ in range(3):
            with pytest.raises(OverBudget), limit.counted("ann", 2, TEN):
                pass
        with limit.counted("ann", 1, TEN):
            pass


def test_one_request_always_goes_whatever_its_size() -> None:
    with InFlight(all_bytes=5).counted("", 11, TEN):
        pass


def test_beyond_what_all_together_may_have_each_user_has_an_equal_share() -> None:
    limit = InFlight(all_bytes=20)
    with contextlib.ExitStack() as held:
        for user in ("ann", "bob"):
            held.enter_context(limit.counted(user, 9, TEN))
        held.enter_context(limit.counted("cid", 3, TEN))
        with pytest.raises(OverBudget, match="all users together"), limit.counted("ann", 1, TEN):
            pass
        held.enter_context(limit.counted("cid", 3, TEN))  # 6 of 20 // 3
        with pytest.raises(OverBudget), limit.counted("cid", 1, TEN):
            pass
        held.enter_context(limit.counted("dan", 9, TEN))  # one always goes


def test_the_error_says_when_to_send_again() -> None:
    body = error_response(TooManyRequests("wait")).error
    assert (body["code"], body["reason"], body["retryAfterSeconds"]) == (429, "TooManyRequests", 1)
