"""Groups of a user count where a service states them, and nowhere else."""

import pytest

from gardenbus.apiserver.access.audit_log import AuditLog
from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.domain.request_subjects import parse_request_subject
from gardenbus.common.api.keys import Header, Subjects
from gardenbus.common.api.restored_requests import REQUEST_INFO
from gardenbus.common.errors import BadRequest
from tests.support.stores import in_memory

SUBJECTS = Subjects()
GROUPS = {Header.GROUPS: '["builders"]'}


@pytest.fixture
def authorizer() -> Authorizer:
    kit = in_memory()
    return Authorizer(kit.store, AuditLog(kit.clock), is_enforced=True)


@pytest.mark.parametrize(
    ("subject", "headers", "groups"),
    [
        (SUBJECTS.as_user("ann", "api.whoami"), GROUPS, {"builders"}),
        (SUBJECTS.as_user("ann", "api.whoami"), {}, set[str]()),
        (SUBJECTS.as_user("ann", "api.whoami"), {**GROUPS, REQUEST_INFO: '{"user":"ann"}'}, set[str]()),
        (SUBJECTS.from_outside("ann", "api.whoami"), GROUPS, set[str]()),
        (SUBJECTS.from_outside("ann", "apply"), GROUPS, set[str]()),
        (SUBJECTS.api("whoami"), GROUPS, set[str]()),
    ],
)
def test_groups_are_those_that_an_insider_states_of_whom_it_speaks_for(
    authorizer: Authorizer, subject: str, headers: dict[str, str], groups: set[str]
) -> None:
    requester = authorizer.requester(parse_request_subject(subject, SUBJECTS), headers, "id")
    assert requester.groups == groups


@pytest.mark.parametrize("stated", ["builders", '"builders"', "[1]", '["a"'])
def test_a_header_that_cannot_be_read_is_an_error(authorizer: Authorizer, stated: str) -> None:
    sender = parse_request_subject(SUBJECTS.as_user("ann", "api.whoami"), SUBJECTS)
    with pytest.raises(BadRequest, match="Gardenbus-Groups: "):
        authorizer.requester(sender, {Header.GROUPS: stated}, "id")
