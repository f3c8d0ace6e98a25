"""What survives what, as the servers are told."""

from pathlib import Path

import pytest

from gardenbus.cli.manifests.files import sort_manifests
from gardenbus.common.runtime.settings import CommonSettings, load
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.landscape import UpOptions
from gardenbus.embedded.process_specs import Addresses
from gardenbus.embedded.servers import nats_configuration, redis_configuration
from gardenbus.embedded.up_arguments import detached_arguments

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("durability", "nats", "redis"),
    [(Durability.PROCESS, 'sync_interval: "2m"', "no"), (Durability.POWER, "sync_interval: always", "always")],
)
def test_servers_sync_before_they_acknowledge_only_where_power_may_fail(durability: Durability, nats: str, redis: str):
    store = Path("/store")
    assert nats in nats_configuration(port=1, monitor_port=2, store=store, durability=durability)
    assert f"appendfsync {redis}\n" in redis_configuration(port=1, store=store, durability=durability)


def test_the_compose_file_survives_loss_of_power():
    assert "sync_interval: always" in (ROOT / "deploy/compose/nats.conf").read_text()
    assert "\nappendfsync always\n" in (ROOT / "deploy/compose/redis.conf").read_text()


def test_the_compose_file_tells_the_services_that_nats_syncs_each_write():
    text = (ROOT / "deploy/compose/compose.yaml").read_text()
    assert text.count("GARDENBUS_NATS_URL:") == text.count('GARDENBUS_NATS_SYNC_ALWAYS: "true"') == 4


@pytest.mark.parametrize("syncs", [True, False])
def test_services_are_told_whether_nats_syncs_each_write(syncs: bool):
    environ = Addresses("nats://n", "redis://r", "garden", syncs).environ("relay")
    assert load(CommonSettings, environ=environ).nats_sync_always is syncs


def test_a_detached_landscape_is_as_durable_as_was_asked_for():
    options = UpOptions(Path("state"), sort_manifests([]), {}, durability=Durability.POWER)
    arguments = detached_arguments(options, [])
    assert arguments[arguments.index("--durability") + 1] == "power"
