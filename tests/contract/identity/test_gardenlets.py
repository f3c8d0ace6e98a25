"""A gardenlet comes in by its certificate alone, and does its work with its row of the permission table."""

import asyncio
import shutil
from datetime import timedelta
from typing import Any

import pytest
from nats.aio.msg import Msg

from gardenbus.agent.connections import OwnConnection
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.errors import Forbidden, SettingsInvalid, Unavailable
from gardenbus.gardenlet.clients.object_lookup import ObjectLookup
from gardenbus.gardenlet.host import GardenletHost
from tests.support.builders import a_managed_seed, a_seed, a_shoot, merged
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.gardenlets import BACKUP_SECRET, Garden, a_configuration, conditions
from tests.support.identities import Guarded

SEED = "aws-eu1"
GARDENLET = Principal("gardenlet", SEED)


def _connection(host: GardenletHost) -> OwnConnection:
    connection = host.connection_of(SEED)
    assert connection is not None
    return connection


async def test_it_comes_up_gets_a_shoot_and_reports_it(agents_landscape: Guarded, garden: Garden) -> None:
    agents_landscape.certify(GARDENLET, garden.directory / SEED)
    await garden.start_alone(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    first = await garden.lease()

    async def renewed() -> None:
        last = await garden.lease()
        assert first is not None
        assert last is not None
        assert last.sequence > first.sequence

    await eventually(renewed)
    await garden.delete(ObjectKey("shoot", "garden-dev", "apollo"))
    await garden.until_gone(ObjectKey("shoot", "garden-dev", "apollo"))


async def test_its_answer_reaches_the_apiserver(agents_landscape: Guarded) -> None:
    """The reply subject is one that the server made: who asks is in another account."""
    subjects = Subjects("garden")
    gardenlet = await agents_landscape.connect(GARDENLET)
    apiserver = await agents_landscape.connect(Principal("service", "apiserver"))

    async def respond(message: Msg) -> None:
        await message.respond(b"kubeconfig")

    await gardenlet.subscribe(subjects.admin_kubeconfigs_of(SEED), cb=respond)  # pyright: ignore[reportUnknownMemberType]
    await gardenlet.flush()
    subject = subjects.admin_kubeconfig(SEED, ObjectKey("shoot", "garden-dev", "apollo"))

    async def reached() -> None:
        try:
            response = await apiserver.request_raw(subject, b"{}", timeout_seconds=HANG_SECONDS)
        except Unavailable as error:  # between two sessions of the gardenlet nobody listens
            raise AssertionError(error.message) from error
        assert response.body == b"kubeconfig"

    await eventually(reached)


async def test_it_outlives_sessions_a_restart_of_nats_and_the_loss_of_a_stream(
    agents_landscape: Guarded, garden: Garden
) -> None:
    agents_landscape.certify(GARDENLET, garden.directory / SEED)
    host = await garden.start_alone(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    connection = _connection(host).bus.connection

    async def two_sessions_later() -> None:
        assert connection.losses >= 2

    await eventually(two_sessions_later)
    await asyncio.to_thread(agents_landscape.server.kill)
    await asyncio.to_thread(agents_landscape.server.start)
    await _reconciled_anew(garden, "testing")
    await garden.lose_stream("BINDINGS")
    await _reconciled_anew(garden, "production")


async def _reconciled_anew(garden: Garden, purpose: str) -> None:
    """Change the shoot, and wait until its gardenlet has acted on that."""
    await garden.change(ObjectKey("shoot", "garden-dev", "apollo"), bump_generation=True, spec={"purpose": purpose})
    generation = (await garden.shoot())["metadata"]["generation"]

    async def reconciled() -> None:
        assert (await garden.shoot())["status"].get("observedGeneration") == generation

    await eventually(reconciled)


async def test_another_process_takes_over_and_misses_nothing(agents_landscape: Guarded, garden: Garden) -> None:
    agents_landscape.certify(GARDENLET, garden.directory / SEED)
    first = await garden.start_alone(a_configuration())
    await garden.place()
    await garden.until_state("Succeeded")
    elsewhere = garden.directory.parent / "elsewhere"
    agents_landscape.certify(GARDENLET, elsewhere / SEED)
    second = await garden.start_alone(a_configuration(), directory=elsewhere)

    async def stands_by() -> None:
        assert second.gardenlets[SEED].heartbeat.has_succeeded
        assert second.gardenlets[SEED].cache.seed is not None
        assert not second.gardenlets[SEED].is_active

    await eventually(stands_by)
    shutil.copytree(garden.directory / SEED, elsewhere / SEED, dirs_exist_ok=True)
    await garden.kill(first)
    await garden.delete(ObjectKey("shoot", "garden-dev", "apollo"))
    await garden.until_gone(ObjectKey("shoot", "garden-dev", "apollo"))
    assert second.gardenlets[SEED].is_active


async def test_a_standby_on_its_own_connection_observes_that_its_seed_is_removed(
    agents_landscape: Guarded, garden: Garden
) -> None:
    agents_landscape.certify(GARDENLET, garden.directory / SEED)
    await garden.start_alone(a_configuration())
    await garden.until_ready(SEED)
    elsewhere = garden.directory.parent / "elsewhere"
    agents_landscape.certify(GARDENLET, elsewhere / SEED)
    standby = (await garden.start_alone(a_configuration(), directory=elsewhere)).gardenlets[SEED]

    async def observed() -> None:
        assert standby.cache.seed is not None

    await eventually(observed)
    await garden.delete(ObjectKey("seed", "", SEED))
    await garden.until_gone(ObjectKey("seed", "", SEED))

    async def gone() -> None:
        assert standby.cache.seed_is_gone

    await eventually(gone)
    assert not standby.is_active


async def test_what_is_announced_of_a_seed_is_returned_to_its_gardenlet_alone(
    agents_landscape: Guarded, garden: Garden
) -> None:
    agents_landscape.certify(GARDENLET, garden.directory / SEED)
    host = await garden.start_alone(a_configuration())
    await garden.until_ready(SEED)
    announced = await ObjectLookup(_connection(host).bus, garden.subjects, SEED).announced_seed()
    assert announced is not None
    assert announced.seed is not None
    assert announced.seed["metadata"]["name"] == SEED
    subject = garden.subjects.as_user("ann", "api.announced")
    operator = await agents_landscape.connect(Principal("operator", "operator"))
    rejected = await operator.request_raw(subject, b"", timeout_seconds=HANG_SECONDS)
    assert b'"ok":false' in rejected.body


async def test_a_renewed_certificate_is_taken_over(agents_landscape: Guarded, garden: Garden) -> None:
    agents_landscape.certify(GARDENLET, garden.directory / SEED, timedelta(seconds=6))
    host = await garden.start_alone(a_configuration())
    await garden.until_ready(SEED)
    losses = _connection(host).bus.connection.losses
    agents_landscape.certify(GARDENLET, garden.directory / SEED)

    async def anew() -> None:
        assert _connection(host).bus.connection.losses > losses
        assert _connection(host).bus.connected

    await eventually(anew)
    await garden.place()
    await garden.until_state("Succeeded")


async def test_an_expired_certificate_is_refused_until_it_is_renewed(
    agents_landscape: Guarded, garden: Garden, capsys: pytest.CaptureFixture[str]
) -> None:
    agents_landscape.certify(GARDENLET, garden.directory / SEED, timedelta(seconds=-5))
    host = await garden.start_alone(a_configuration())

    async def denied() -> None:
        lines = [line for line in capsys.readouterr().out.splitlines() if "credentials.rejected" in line]
        assert lines
        assert "the certificate expired at" in lines[0]
        assert f"seed:{SEED}" in lines[0]

    await eventually(denied)
    assert host.readiness()[SEED] == f"not connected as seed:{SEED}"
    agents_landscape.certify(GARDENLET, garden.directory / SEED)
    await garden.until_ready(SEED)


async def test_the_certificate_of_another_seed_is_a_clear_error(agents_landscape: Guarded, garden: Garden) -> None:
    agents_landscape.certify(Principal("gardenlet", "aws-dublin"), garden.directory / SEED)
    with pytest.raises(SettingsInvalid, match=r"seed:aws-eu1 cannot connect with the credentials of seed:aws-dublin"):
        await garden.start_alone(a_configuration())


async def test_it_reads_the_secret_of_its_backup_alone(agents_landscape: Guarded, garden: Garden) -> None:
    """The Secret that its Seed names, and no other: the apiserver authorizes what the table grants."""
    agents_landscape.certify(GARDENLET, garden.directory / SEED)
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "backup", "namespace": "garden"}
    backup = {"provider": "aws", "region": "eu-west-1", "credentialsRef": reference}
    host = await garden.start_alone(a_configuration(seedConfig={"spec": {"backup": backup}}))
    await garden.until_ready(SEED)

    async def available() -> None:
        assert conditions(await garden.seed())["BackupBucketsReady"] == "True"

    await eventually(available)
    await garden.store.create({**BACKUP_SECRET, "metadata": {"name": "foreign", "namespace": "garden"}})
    lookup = ObjectLookup(_connection(host).bus, garden.subjects, SEED)
    assert await lookup.exists(ObjectKey("secret", "garden", "backup"))
    with pytest.raises(Forbidden, match=f"nothing on seed {SEED} leads to it"):
        await lookup.exists(ObjectKey("secret", "garden", "foreign"))


async def test_a_gardenlet_that_it_deploys_comes_up_with_its_own_certificate(
    agents_landscape: Guarded, garden: Garden
) -> None:
    for name in (SEED, "grown"):
        agents_landscape.certify(Principal("gardenlet", name), garden.directory / name)
    await _grow(garden)
    await garden.until_ready("grown")

    async def well() -> None:
        managed_seed = await garden.get(ObjectKey("managedseed", "garden", "grown"))
        assert conditions(managed_seed) == {"ShootReconciled": "True", "SeedRegistered": "True"}

    await eventually(well)
    await garden.delete(ObjectKey("managedseed", "garden", "grown"))
    await garden.until_gone(ObjectKey("managedseed", "garden", "grown"))


async def test_a_gardenlet_that_brings_its_own_credentials_waits_for_them(
    agents_landscape: Guarded, garden: Garden, capsys: pytest.CaptureFixture[str]
) -> None:
    agents_landscape.certify(GARDENLET, garden.directory / SEED)
    await _grow(garden, bootstrap="None")

    async def rejected() -> None:
        assert "spec.gardenlet.bootstrap is None: credentials.json or credentials.nk" in capsys.readouterr().out

    await eventually(rejected)
    agents_landscape.certify(Principal("gardenlet", "grown"), garden.directory / "grown")
    await garden.until_ready("grown")


async def _grow(garden: Garden, **gardenlet: Any) -> None:
    """Have the gardenlet of the host seed deploy another one."""
    await garden.start_alone(a_configuration(controllers={"managedSeed": {"waitSyncPeriod": "1s"}}))
    await garden.place(SEED, a_shoot("field", "garden"))
    config = {"seedConfig": {"spec": a_seed()["spec"]}}
    spec = {"spec": {"gardenlet": {"config": config, **gardenlet}}}
    await garden.store.create(merged(a_managed_seed("grown", "field"), spec))
