"""What the server says of a sender counts."""

import pytest

from gardenbus.apiserver.domain.senders import check_sender
from gardenbus.common.api.restored_requests import REQUEST_INFO
from gardenbus.common.errors import Impersonation


def test_a_message_that_is_stored_or_of_the_services_own_account_states_no_sender() -> None:
    check_sender({}, "ann")


def test_the_stated_sender_is_the_one_that_the_subject_names() -> None:
    check_sender({REQUEST_INFO: '{"acc":"OUT","rtt":1,"user":"ann"}'}, "ann")


@pytest.mark.parametrize("stated", ['{"acc":"OUT","user":"bob"}', '{"acc":"OUT"}', "", "[]", '{"user":7}'])
def test_any_other_is_an_impersonation(stated: str) -> None:
    with pytest.raises(Impersonation):
        check_sender({REQUEST_INFO: stated}, "ann")
