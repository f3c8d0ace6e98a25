"""Wiring of a gardenlet process, and of each gardenlet in it."""

from pathlib import Path

import msgspec

from gardenbus.agent.connections import connect_agents
from gardenbus.agent.host import HostPorts, spawn_host
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.runtime.service import ServiceContext
from gardenbus.gardenlet import metrics
from gardenbus.gardenlet.clients.managed_gardenlets import GardenletsOnStreams, RequestedGardenlets
from gardenbus.gardenlet.controllers.backups import BackupsReconciler
from gardenbus.gardenlet.controllers.bastions import BastionsReconciler
from gardenbus.gardenlet.controllers.installations import InstallationsReconciler
from gardenbus.gardenlet.controllers.managed_seeds import ManagedSeedReconciler
from gardenbus.gardenlet.controllers.seed import SeedReconciler
from gardenbus.gardenlet.controllers.shoot import ShootReconciler
from gardenbus.gardenlet.gardenlet import Gardenlet, Reconcilers
from gardenbus.gardenlet.host import GardenletHost
from gardenbus.gardenlet.seed import ServedSeed
from gardenbus.gardenlet.settings import GardenletSettings

STREAMS = ("BINDINGS", "LEASES", "REPORTS")
"""Streams without which no gardenlet can work; apiserver, relay and others bring them about."""


def gardenlet_of(seed: ServedSeed) -> Gardenlet:
    """Make the gardenlet of a seed, with its reconcilers."""
    backups = BackupsReconciler(seed)
    installations = InstallationsReconciler(seed, backups)
    gardenlets = (
        RequestedGardenlets(seed.lookup)
        if seed.follows_alone
        else GardenletsOnStreams(seed.bus, seed.subjects, seed.configuration.lease.grace_period)
    )
    return Gardenlet(
        seed,
        Reconcilers(
            seed=SeedReconciler(seed, backups),
            installations=installations,
            bastions=BastionsReconciler(seed),
            backups=backups,
            shoots=ShootReconciler(seed, installations.missing),
            managed_seeds=ManagedSeedReconciler(seed, gardenlets),
        ),
    )


async def build(context: ServiceContext[GardenletSettings]) -> None:
    """Connect to the bus and start the gardenlets."""
    settings = context.settings
    agents = {
        Principal("gardenlet", each.seed_name): Path(settings.state_dir) / each.seed_name
        for each in settings.configurations
    }
    bus, connections = await connect_agents(context, agents, awaited_streams=STREAMS)
    ports = HostPorts(bus, Subjects(settings.prefix), context.clock, Path(settings.state_dir), connections)
    host = GardenletHost(settings.configurations, ports, gardenlet_of)
    context.stack.push_async_callback(host.close)
    await host.start()
    gardenlets = host.gardenlets.values()  # a live view: gardenlets come and go
    metrics.ACTIVE.set_function(lambda: sum(each.is_active for each in gardenlets))
    metrics.IN_FLIGHT.set_function(lambda: sum(each.queue.in_flight for each in gardenlets))
    context.health.add_page("/seeds", lambda: (200, msgspec.json.encode(host.endpoints()).decode() + "\n"))
    context.health.add_agents("heartbeats", healthy=host.health, ready=host.readiness)
    spawn_host(context, "gardenlets", host)
