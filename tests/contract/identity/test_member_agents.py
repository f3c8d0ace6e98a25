"""A member agent comes in by its certificate alone, and does its work with its row of the permission table."""

import asyncio

from gardenbus.common.api.identity.principals import Principal
from tests.support.gardenlets import Garden
from tests.support.identities import Guarded
from tests.support.member_agents import (
    a_manifest,
    a_member_cluster,
    a_work,
    an_agent_configuration,
    cluster_key,
    member_agents_alone,
    until_condition,
    work_key,
)

LISBON = an_agent_configuration(a_member_cluster())
AGENT = Principal("member-agent", "lisbon")


async def test_a_cluster_joins_and_has_its_works_applied_whatever_happens_to_nats(
    agents_landscape: Guarded, garden: Garden
) -> None:
    agents_landscape.certify(AGENT, garden.directory / "lisbon")
    async with member_agents_alone(garden, LISBON) as host:
        await until_condition(garden, cluster_key(), "Joined", "True", "MemberAgentJoined")
        await garden.store.create(a_work(a_manifest()))
        await until_condition(garden, work_key(), "Available", "True", "AllManifestsAvailable")
        assert host.is_synced
        assert host.connection_problem is None
        await asyncio.to_thread(agents_landscape.server.kill)
        await asyncio.to_thread(agents_landscape.server.start)
        await garden.store.create(a_work(a_manifest(name="second"), name="second"))
        await until_condition(garden, work_key("second"), "Available", "True", "AllManifestsAvailable")
        await garden.lose_stream("OBJECTS")
        await garden.store.create(a_work(a_manifest(name="third"), name="third"))
        await until_condition(garden, work_key("third"), "Available", "True", "AllManifestsAvailable")
        await garden.delete(work_key("second"))
        await until_condition(garden, work_key("second"), "Applied", "False", "ManifestsDeleted")
