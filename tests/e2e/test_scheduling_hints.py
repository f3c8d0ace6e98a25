"""New shoots of a living landscape, with its permissions, are bound before their messages come by the queue."""

import json
from pathlib import Path

import pytest

from tests.e2e.test_metrics import scraped, values
from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot
from tests.support.eventually import eventually
from tests.support.landscape import a_landscape

pytestmark = pytest.mark.slow

ORDERS = 20


async def test_a_shoot_that_comes_alone_is_bound_by_the_apiservers_hint(tmp_path: Path) -> None:
    documents = (a_gardenlet_configuration("aws-eu1", shoots=ORDERS), a_project(), a_cloudprofile())
    file = tmp_path / "landscape.yaml"
    file.write_text("\n---\n".join(json.dumps(each) for each in documents))
    async with a_landscape(tmp_path / "state", "-f", str(file)) as landscape:
        for number in range(ORDERS):
            await landscape.publish("garden.apply", [a_shoot(f"s{number}")])

            async def has_seed(name: str = f"s{number}") -> None:
                assert (await landscape.query(f"get.shoot.garden-dev.{name}"))["spec"].get("seedName") == "aws-eu1"

            await eventually(has_seed, every=0.05)
        scheduler = (await scraped(landscape))["scheduler"]

    assert values(scheduler, "gardenbus_scheduler_attempts_total")[("bound",)] == ORDERS
    assert values(scheduler, "gardenbus_scheduler_hinted_shoots_total")[("bound",)] > 0
