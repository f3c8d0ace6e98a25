"""How much one sender may have in flight."""

import pytest

from gardenbus.apiserver.domain.in_flight import InFlightLimit
from gardenbus.apiserver.domain.responses import error_response
from gardenbus.common.errors import TooManyRequests


def test_what_one_sender_has_in_flight_is_no_others():
    limit = InFlightLimit(10)
    with limit.counted("ann", 6), limit.counted("ann", 4), limit.counted("bob", 10):
        with pytest.raises(TooManyRequests, match="of 'ann' are in flight"), limit.counted("ann", 1):
            pass
        with pytest.raises(TooManyRequests, match="of 'bob'"), limit.counted("bob", 1):
            pass
    with limit.counted("ann", 10):
        pass


def test_a_request_that_fails_or_is_refused_is_in_flight_no_more():
    limit = InFlightLimit(10)
    with pytest.raises(ZeroDivisionError), limit.counted("ann", 10):
        raise ZeroDivisionError
    with limit.counted("ann", 9):
        for _ in range(3):
            with pytest.raises(TooManyRequests), limit.counted("ann", 2):
                pass
        with limit.counted("ann", 1):
            pass


def test_one_request_always_goes_whatever_its_size():
    with InFlightLimit(10).counted("", 11):
        pass


def test_the_error_says_when_to_send_again():
    body = error_response(TooManyRequests("wait")).error
    assert (body["code"], body["reason"], body["retryAfterSeconds"]) == (429, "TooManyRequests", 1)
