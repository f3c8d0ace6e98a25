"""One of several gardenlets is active; whoever dies, is cut off or comes back, a shoot is worked on by one alone."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.gardenlet.backend.port import StaleFencingToken
from gardenbus.gardenlet.host import GardenletHost
from tests.support.builders import a_shoot
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.gardenlets import Garden, a_configuration, a_garden, conditions
from tests.support.servers import Server

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
NAME = ("garden-dev", "apollo")


def is_active(host: GardenletHost, seed: str = "aws-eu1") -> bool:
    return host.gardenlets[seed].is_active


def applied(host: GardenletHost) -> dict[str, int]:
    record = host.gardenlets["aws-eu1"].backend.load(NAME)
    assert record is not None
    return record.applied


async def until_active(host: GardenletHost) -> None:
    async def active() -> None:
        assert is_active(host)

    await eventually(active, every=0.02)


async def until_steps_done(host: GardenletHost, number: int) -> None:
    async def done() -> None:
        record = host.gardenlets["aws-eu1"].backend.load(NAME)
        assert record is not None
        assert record.run is not None
        assert len(record.run.done) >= number

    await eventually(done, every=0.01)


async def test_a_killed_gardenlet_renews_its_lease_at_once_and_goes_on_where_it_stood(garden: Garden) -> None:
    host = await garden.start(a_configuration(backend={"stepSeconds": 0.15}))
    await garden.place()
    await until_steps_done(host, 4)
    await garden.kill(host)
    host = await garden.start(a_configuration(backend={"stepSeconds": 0.15}))
    await until_active(host)
    await garden.until_state("Succeeded")

    assert set(applied(host).values()) == {1}


async def test_a_standby_waits_for_the_lease_and_then_carries_on(garden: Garden) -> None:
    slow = a_configuration(backend={"stepSeconds": 0.3})
    first = await garden.start(slow)
    await until_active(first)
    second = await garden.start(slow)
    await garden.place()
    await until_steps_done(first, 2)
    assert not is_active(second)
    assert second.unhealthy() == []
    old = first.gardenlets["aws-eu1"].reporter.fencing_token
    await garden.kill(first)
    await until_active(second)
    await garden.until_state("Succeeded")

    new = second.gardenlets["aws-eu1"].reporter.fencing_token
    assert old is not None
    assert new is not None
    assert new > old
    assert set(applied(second).values()) == {1}


async def test_an_orderly_stop_hands_the_lease_over_at_once(garden: Garden) -> None:
    first = await garden.start(a_configuration(controllers={"seed": {"leaseResyncMissThreshold": 100}}))
    await until_active(first)
    second = await garden.start(a_configuration(controllers={"seed": {"leaseResyncMissThreshold": 100}}))
    await garden.stop(first)

    await until_active(second)


async def test_one_that_was_replaced_can_neither_write_nor_report(garden: Garden) -> None:
    first = await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    old = first.gardenlets["aws-eu1"]
    fencing_token = old.reporter.fencing_token
    assert fencing_token is not None
    second_backend = (await garden.start(a_configuration())).gardenlets["aws-eu1"].backend
    await second_backend.acquire(fencing_token._replace(sequence=fencing_token.sequence + 1000))

    record = old.backend.load(NAME)
    assert record is not None
    with pytest.raises(StaleFencingToken):
        old.backend.save(record)
    with pytest.raises(StaleFencingToken):
        await old.backend.acquire(fencing_token)


async def test_reports_with_an_older_fencing_token_are_rejected(garden: Garden) -> None:
    first = await garden.start(a_configuration())
    await garden.place()
    shoot = await garden.until_state("Succeeded")
    fencing_token = first.gardenlets["aws-eu1"].reporter.fencing_token
    assert fencing_token is not None
    await garden.kill(first)
    second = await garden.start(a_configuration())
    await until_active(second)
    second.gardenlets["aws-eu1"].reporter.enqueue_status(APOLLO, shoot["metadata"]["uid"], {"technicalID": "new"})

    async def accepted() -> None:
        assert (await garden.shoot())["status"]["technicalID"] == "new"

    await eventually(accepted)
    await garden.publish(
        garden.subjects.report("aws-eu1", APOLLO),
        b'{"status":{"technicalID":"old"}}',
        {Header.UID: shoot["metadata"]["uid"], Header.FENCING_TOKEN: fencing_token.text},
    )

    async def rejected() -> None:
        message = await garden.rejected()
        assert message is not None
        assert "fence" in message.headers[Header.REASON]

    await eventually(rejected)
    assert (await garden.shoot())["status"]["technicalID"] == "new"


async def test_who_loses_the_lease_to_another_stops_at_once(garden: Garden) -> None:
    host = await garden.start(a_configuration(backend={"stepSeconds": 0.3}))
    await garden.place()
    await until_steps_done(host, 1)
    foreign = msgspec.json.encode({"kind": "Lease", "spec": {"holderIdentity": "somebody else"}})
    await garden.publish(garden.subjects.lease("aws-eu1"), foreign, {})

    async def stood_down() -> None:
        assert host.gardenlets["aws-eu1"].reporter.fencing_token is None
        assert host.gardenlets["aws-eu1"].queue.in_flight == 0

    await eventually(stood_down)
    await garden.until_state("Succeeded")  # the other one never renews
    assert set(applied(host).values()) == {1}


async def test_an_outage_of_the_bus_loses_nothing(nats_server: Server, tmp_path: Path) -> None:
    async with a_garden(nats_server.url, "garden", tmp_path / "state") as garden:
        configuration = a_configuration(
            controllers={"seed": {"leaseResyncMissThreshold": 20}}, backend={"stepSeconds": 0.2}
        )
        host = await garden.start(configuration)
        for number in range(5):
            await garden.place(shoot=a_shoot(f"s{number}"))
        await asyncio.to_thread(nats_server.kill)
        await asyncio.sleep(2)
        await asyncio.to_thread(nats_server.start)

        for number in range(5):
            shoot = await garden.until_state("Succeeded", f"s{number}")
            assert set(conditions(shoot).values()) == {"True"}
        assert is_active(host)


async def test_a_process_survives_sigkill_and_stops_in_order(garden: Garden, tmp_path: Path) -> None:
    configuration = tmp_path / "gardenlet.yaml"
    configuration.write_text(yaml.safe_dump(a_configuration(backend={"stepSeconds": 0.4})))

    async def renewals() -> int:
        lease = await garden.lease()
        assert lease is not None
        return lease.sequence

    async def serves() -> None:
        assert await renewals() > killed_at

    async def started() -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gardenbus.gardenlet",
            "--config",
            str(configuration),
            "--state-dir",
            str(garden.directory),
            env={**os.environ, "GARDENBUS_NATS_URL": garden.nats_url, "GARDENBUS_PREFIX": garden.subjects.prefix},
            stdout=asyncio.subprocess.DEVNULL,
        )

    process, killed_at = await started(), 0
    try:
        await garden.place()
        await garden.until_state("Processing")
        for _ in range(3):
            await asyncio.sleep(1.2)
            process.kill()
            await process.wait()
            killed_at = await renewals()
            process = await started()
        await garden.until_state("Succeeded")
        file = garden.directory / "aws-eu1" / "shoots" / "garden-dev" / "apollo.json"
        assert set(msgspec.json.decode(file.read_bytes())["applied"].values()) == {1}
        await eventually(serves)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(HANG_SECONDS):
            assert await process.wait() == 0
        lease = await garden.lease()
        assert lease is not None
        assert msgspec.json.decode(lease.body)["spec"]["holderIdentity"] == ""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_control_plane_that_the_store_has_lost_is_kept(garden: Garden) -> None:
    host = await garden.start(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    await garden.stop(host)
    del garden.store.state.rows[APOLLO]  # store and bus as they were before the order
    await garden.bus.purge(garden.subjects.stream("BINDINGS"), garden.subjects.binding("aws-eu1", *NAME))
    host = await garden.start(a_configuration())
    seed = ObjectKey("seed", "", "aws-eu1")

    async def warned() -> None:
        last = await garden.bus.last(garden.subjects.stream("EVENTS"), garden.subjects.event(seed))
        assert last is not None
        assert msgspec.json.decode(last.body)["reason"] == "ObjectUnknown"

    await eventually(warned)
    record = host.gardenlets["aws-eu1"].backend.load(NAME)
    assert record is not None
    assert not record.is_half_gone
    assert record.last_operation["state"] == "Succeeded"

    steps, unknown = applied(host), await garden.store.unknown_object(APOLLO, "aws-eu1")
    assert unknown is not None
    assert unknown.uid == record.uid
    await garden.store.adopt(unknown)
    await garden.until_state("Succeeded")

    async def observed() -> None:
        shoot = host.gardenlets["aws-eu1"].cache.shoot(NAME)
        assert shoot is not None
        assert shoot.uid == record.uid

    await eventually(observed)
    assert applied(host) == steps


async def test_without_a_configuration_the_process_ends_with_code_2(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(yaml.safe_dump(a_configuration(resources={"capacity": {"shoots": 1}, "reserved": {"shoots": 2}})))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gardenbus.gardenlet",
        "--config",
        str(bad),
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()

    assert process.returncode == 2
    assert b"reserved must be lower or equal to capacity" in errors
