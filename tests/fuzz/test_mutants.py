"""What keeps tenants apart holds for thousands of draws, and each precaution that is taken out is missed by a few."""

import pytest

from tests.fuzz.findings import Findings
from tests.fuzz.mutants import MUTANTS, Mutant
from tests.fuzz.process import Fuzzer
from tests.fuzz.tenants import TenantFuzzer, fuzz_tenants

DRAWS = 1_000
INPUTS, CHUNK = 8_000, 250
SEED = 7
SLOW = "slow query"


def found_in_process() -> Findings:
    """Findings of the fuzzer's inputs, up to the first of them."""
    fuzzer, findings = Fuzzer(SEED), Findings()
    for first in range(0, INPUTS, CHUNK):
        findings.add_all(fuzzer.run(range(first, first + CHUNK)))
        if findings.found:
            break
    return findings


def test_what_keeps_tenants_apart_holds_whatever_outsiders_send() -> None:
    findings = fuzz_tenants(DRAWS, SEED)
    assert findings.found == {}, "\n".join(findings.lines())
    assert {"taken", "not permitted", "consumer rejected"} <= findings.outcomes.keys()


def test_the_same_seed_draws_the_same() -> None:
    one, other = (TenantFuzzer(SEED).run(500) for _ in range(2))
    assert one.outcomes == other.outcomes
    assert one.outcomes != TenantFuzzer(SEED + 1).run(500).outcomes


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_precaution_that_is_taken_out_is_missed(mutant: Mutant) -> None:
    with mutant.applied():
        findings = found_in_process() if mutant.place == SLOW else fuzz_tenants(DRAWS, SEED)
    assert mutant.place in findings.found, "\n".join(findings.lines())
    assert all(place == mutant.place or place.startswith("bytes of ") or "Nats-" in place for place in findings.found)
