"""Certificates of many seeds: one renewal costs as much as among few, and renewals are spread."""

import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from random import Random

from gardenbus.agent.domain.rotation import renewal_at
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import key_of_request, new_signing_request
from gardenbus.credentials.certificates import new_key, new_request
from tests.support.signing import START, Signing

SEEDS = 60
SAMPLE = 20


async def test_a_renewal_costs_the_same_however_many_there_are(tmp_path: Path) -> None:
    """In CPU of this process, and as a ratio: 2,000 seeds are measured in docs/performance.md."""
    signing, costs = Signing(tmp_path), list[float]()
    await signing.start()
    for generation in range(2):
        for number in range(SEEDS):
            principal, name = Principal("gardenlet", f"seed-{number}"), f"csr-{generation}-{number}"
            body = new_signing_request(name, new_request(principal, new_key()))
            await signing.result(principal.user, "csr.create", body)
            began = time.process_time()
            await _decided(signing, name)
            costs.append(time.process_time() - began)
            assert [each.name for each in signing.requests.issued_to(principal)][-1] == name
        signing.clock.advance(timedelta(days=24).total_seconds())
    assert sorted(costs[-SAMPLE:])[SAMPLE // 2] < 3 * sorted(costs[:SAMPLE])[SAMPLE // 2]


async def _decided(signing: Signing, name: str) -> None:
    """Have a request signed, with a cache that hears of each change by itself."""
    key = key_of_request(name)
    for _ in range(2):
        stored = await signing.store.get(key)
        signing.requests.changed(key, None, stored)
        await signing.controller.reconcile(key)


def test_seeds_that_came_up_together_do_not_renew_together() -> None:
    random, life = Random(1), timedelta(days=30)
    moments = [renewal_at(START, START + life, random.random()) - START for _ in range(2000)]
    assert min(moments) >= timedelta(days=21)
    assert max(moments) <= timedelta(days=27)
    assert max(Counter(each // timedelta(minutes=1) for each in moments).values()) < 10
