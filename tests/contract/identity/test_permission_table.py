"""The whole permission table is walked on a real server: what it grants goes, and whatever else is refused."""

from pathlib import Path

import pytest

from gardenbus.common.api.identity.accounts import crossings
from gardenbus.common.api.identity.permissions import OUTSIDE_REPLIES, covers, permissions_of
from gardenbus.common.api.identity.principals import Principal
from tests.support.identities import SUBJECTS, guarded
from tests.support.permission_walk import OUTSIDERS, PRINCIPALS, unlike_the_table

BETWEEN_OUTSIDERS = (SUBJECTS.extensions_of("aws-cork"), "_INBOX.seed:aws-cork.>")
"""A gardenlet and who answers for its backend `nats`: both are outside."""


async def test_everybody_gets_their_row_and_nothing_else(tmp_path: Path) -> None:
    async with guarded(tmp_path) as landscape:
        url = landscape.server.url
        walked = [(who.user, await unlike_the_table(url, landscape.credentials(who), who)) for who in PRINCIPALS]
    assert [(user, found) for user, found in walked if found] == []


def test_nothing_crosses_between_the_accounts_that_no_row_grants() -> None:
    rows = [permissions_of(who, SUBJECTS) for who in OUTSIDERS]
    for crossing in crossings(SUBJECTS):
        local = crossing.local or crossing.subject
        beginning = local.split("*", maxsplit=1)[0].split(">", maxsplit=1)[0]
        subjects = [each for row in rows for each in (row.publish if crossing.inward else row.subscribe)]
        assert any(each.startswith(beginning) for each in subjects), f"nobody uses {local}"


@pytest.mark.parametrize("principal", OUTSIDERS, ids=lambda who: who.user)
def test_nobody_outside_has_a_grant_that_no_crossing_carries(principal: Principal) -> None:
    inward = [each.local or each.subject for each in crossings(SUBJECTS) if each.inward]
    for subject in permissions_of(principal, SUBJECTS).publish:
        if subject == OUTSIDE_REPLIES:  # the server makes these, and carries each to whom it made it for
            continue
        if subject in BETWEEN_OUTSIDERS:
            continue
        probe = subject.replace(">", "x.y").replace("*", "x")
        assert covers(inward, probe), f"{subject} leads nowhere"
