"""A minute of the fuzzer with credentials; `make fuzz ARGS="roles --seconds 1800"` goes on for half an hour."""

from pathlib import Path

import pytest

from gardenbus.common.api.identity.principals import Principal
from tests.fuzz.attackers import ATTACKERS
from tests.fuzz.attacks import Attacks
from tests.fuzz.messages import messages_of
from tests.fuzz.process import stored_world
from tests.fuzz.roles import a_role_fuzzer

SECONDS = 60.0


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_whoever_holds_a_credential_neither_stops_nor_fools_the_landscape(tmp_path: Path) -> None:
    async with a_role_fuzzer(tmp_path, seed=7) as fuzzer:
        findings = await fuzzer.run(SECONDS)
        assert findings.found == {}, "\n".join(fuzzer.lines())


@pytest.mark.parametrize("principal", ATTACKERS, ids=str)
def test_each_sort_of_credential_has_attacks_and_the_same_seed_draws_the_same(principal: Principal) -> None:
    stored = stored_world()[1]
    one, other = (Attacks(principal, messages_of(stored, 7), 7) for _ in range(2))
    drawn = [one.next() for _ in range(200)]
    assert drawn == [other.next() for _ in range(200)]
    assert any(sent.is_request for sent in drawn)
    assert max(len(sent.message.body) for sent in drawn) > 500_000
