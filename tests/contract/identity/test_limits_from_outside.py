"""Whom the callout lets in has limits of size and number; an operator may send more."""

from pathlib import Path

from structlog.testing import capture_logs

from gardenbus.common.adapters.nats.messages import RawMessage, publish_command
from gardenbus.common.api.identity.permissions import OUTSIDER_PAYLOAD, OUTSIDER_SUBSCRIPTIONS
from gardenbus.common.api.identity.principals import Principal
from tests.support.eventually import eventually
from tests.support.identities import guarded

OPERATOR, GARDENLET = Principal("operator", "operator"), Principal("gardenlet", "aws-cork")
RELAY = Principal("service", "relay")
LEASE = "garden.lease.aws-cork"


async def test_outsiders_send_a_mebibyte_and_operators_eight(tmp_path: Path) -> None:
    async with guarded(tmp_path) as landscape:
        received = list[RawMessage]()
        operator, outsider = await landscape.connect(OPERATOR), await landscape.connect(GARDENLET)
        await operator.listen("garden.>", received.append)
        await operator.flush_fully()
        await operator.send([publish_command("garden.apply", bytes(8 * OUTSIDER_PAYLOAD))])
        await outsider.send([publish_command(LEASE, bytes(OUTSIDER_PAYLOAD))])

        async def arrived() -> None:
            assert sorted(len(each.body) for each in received) == [OUTSIDER_PAYLOAD, 8 * OUTSIDER_PAYLOAD]

        await eventually(arrived)
        assert outsider.losses == 0
        await outsider.send([publish_command(LEASE, bytes(OUTSIDER_PAYLOAD + 1))])

        async def cut_off() -> None:
            assert outsider.losses == 1

        await eventually(cut_off)
        assert len(received) == 2


async def test_each_connection_of_an_outsider_has_fifty_subscriptions_and_a_service_has_more(tmp_path: Path) -> None:
    async with guarded(tmp_path) as landscape:
        service = await landscape.connect(RELAY)
        for number in range(OUTSIDER_SUBSCRIPTIONS + 10):
            await service.listen(f"{RELAY.inbox}.{number}", list[RawMessage]().append)
        await service.flush_fully()
        assert service.losses == 0
        operator, received = await landscape.connect(OPERATOR), list[RawMessage]()
        await operator.listen(LEASE, received.append)
        await operator.flush_fully()
        for connections in (1, 2):  # each connection has its own
            outsider = await landscape.connect(GARDENLET)
            with capture_logs() as logs:
                for number in range(OUTSIDER_SUBSCRIPTIONS + 10):
                    await outsider.listen(f"{GARDENLET.inbox}.{number}", list[RawMessage]().append)
                await outsider.flush_fully()
            rejected = [line for line in logs if line["event"] == "subscriptions.exceeded"]
            assert len(rejected) == 11  # one of the fifty is that of replies
            assert "maximum subscriptions exceeded" in rejected[0]["error"].lower()
            assert "those beyond get no messages" in rejected[0]["reason"]
            await outsider.send([publish_command(LEASE, b"{}")])

            async def arrived(count: int = connections) -> None:
                assert len(received) == count

            await eventually(arrived)
            assert (outsider.losses, outsider.is_connected) == (0, True)
