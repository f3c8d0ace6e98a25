"""Subjects and headers of requests that were put back: what was sent, by whom, and where it stood."""

import pytest

from gardenbus.common.api.keys import Subjects
from gardenbus.common.api.restored_requests import SentAs, is_restored, put_back, sent_as
from gardenbus.common.errors import BadRequest

SUBJECTS = Subjects("garden")


@pytest.mark.parametrize("subject", ["garden.apply", "garden.delete", "garden.as.ann.apply", "garden.as.ann.delete"])
def test_what_is_put_back_is_read_as_it_was_sent(subject: str) -> None:
    sent = SentAs(subject, {"Nats-Request-Info": '{"user":"ann"}', "Gardenbus-Validate": "strict"}, (2**60, 7))
    under, headers = put_back(sent, SUBJECTS)
    assert is_restored(under, SUBJECTS)
    assert sent_as(under, headers, SUBJECTS) == sent


def test_headers_for_the_server_are_not_put_back() -> None:
    announced = {
        "Nats-Msg-Id": "1",
        "nats-expected-last-sequence": "7",
        "Nats-Batch-Id": "b",
        "traceparent": "00-1-2-01",
    }
    assert put_back(SentAs("garden.apply", announced, (1, 2)), SUBJECTS)[1] == {"traceparent": "00-1-2-01"}


def test_a_header_of_ours_states_no_sender_elsewhere() -> None:
    stated = put_back(SentAs("garden.apply", {"Nats-Request-Info": "{}"}, (1, 2)), SUBJECTS)[1]
    assert stated
    assert sent_as("garden.apply", stated, SUBJECTS) == SentAs("garden.apply", stated)
    assert "Nats-Request-Info" not in put_back(SentAs("garden.apply", stated, (1, 2)), SUBJECTS)[1]
    assert put_back(SentAs("garden.apply", stated, (1, 2)), SUBJECTS)[1] == {}


@pytest.mark.parametrize("place", ["", "1", "x.1", "1.-1", "1.²", "12345678901234567890.1"])
def test_an_impossible_place_is_no_place(place: str) -> None:
    with pytest.raises(BadRequest, match="is not restored"):
        sent_as(f"garden.restored.{place}.apply", {}, SUBJECTS)
