"""The certificate authority is rotated while shoots are placed and services die: nothing is lost or torn down."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import nats.errors
import pytest
import yaml

from gardenbus.cli.diagnostics.served_certificates import until_served
from gardenbus.cli.local.authority_rotation import AuthorityRotation
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import read_credentials
from gardenbus.common.errors import GardenbusError
from gardenbus.credentials.certificates import is_issued_by, issued_at, read_certificate
from tests.e2e.test_cluster import primary_of
from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot
from tests.support.control_planes import ControlPlanes
from tests.support.eventually import eventually
from tests.support.landscape import Landscape, a_landscape, authorities_of, violations

pytestmark = pytest.mark.slow

SHOOTS = int(os.environ.get("GARDENBUS_ROTATION_SHOOTS", "60"))
MANY_SHOOTS, SHORT_LIFE_SECONDS = 500, 60
"""Of the long proof."""

FENCED = "is too old"
"""What a gardenlet that was killed had sent last may arrive when the next one is active: it does not count."""

SEEDS = 4
SERVICES = ("identity", "gardenlet", "apiserver", "relay", "scheduler")
NAMESPACE = "garden-dev"


def _file(path: Path, shoots: int) -> Path:
    path.write_text(
        yaml.safe_dump_all(
            [
                *(a_gardenlet_configuration(f"seed-{number}", shoots // SEEDS + 5) for number in range(SEEDS)),
                a_project(),
                a_cloudprofile(),
            ]
        )
    )
    return path


async def _until_placed(landscape: Landscape, names: Sequence[str]) -> dict[str, str]:
    """Wait until all shoots have their control plane; returns the seed of each, by its path."""

    async def placed() -> dict[str, str]:
        try:
            shoots = await landscape.list(f"shoot.{NAMESPACE}")
        except (nats.errors.Error, OSError) as error:
            raise AssertionError(f"nobody answers: {error}") from error
        found = {each["metadata"]["name"]: each.get("status", {}) for each in shoots}
        assert sorted(found) == sorted(names)
        waiting = {n: s for n, s in found.items() if s.get("lastOperation", {}).get("state") != "Succeeded"}
        assert not waiting, f"{len(waiting)} are not up yet"
        return {f"{NAMESPACE}/{name}": status["seedName"] for name, status in found.items()}

    return await eventually(placed, every=0.5)


async def _until_renewed(landscape: Landscape) -> None:
    """Rotate until nobody is left with a certificate of the old authority, whatever dies meanwhile."""

    async def renewed() -> None:
        ended = await landscape.command("ca", "rotate")
        assert "everybody has a certificate of the new one" in ended.stdout, ended

    await eventually(renewed, every=1)


@pytest.mark.long
async def test_nothing_is_lost_doubled_or_torn_down(tmp_path: Path) -> None:
    await _rotate_while_shoots_are_placed(tmp_path, SHOOTS)


@pytest.mark.long
async def test_nothing_is_with_many_shoots_and_certificates_of_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GARDENBUS_CERTIFICATE_SECONDS", str(SHORT_LIFE_SECONDS))
    await _rotate_while_shoots_are_placed(tmp_path, MANY_SHOOTS)
    lives = [_life_seconds(file) for file in (tmp_path / "state").glob("gardenlets/*/credentials.pem")]
    assert len(lives) == SEEDS
    assert max(lives) <= SHORT_LIFE_SECONDS


def _life_seconds(file: Path) -> float:
    certificate = read_certificate(file.read_bytes())
    return (certificate.not_valid_after_utc - issued_at(certificate)).total_seconds()


@pytest.mark.long
async def test_nothing_is_in_a_cluster_whose_servers_die_meanwhile(tmp_path: Path) -> None:
    await _rotate_while_shoots_are_placed(tmp_path, SHOOTS, "--cluster")


async def _rotate_while_shoots_are_placed(tmp_path: Path, shoots: int, *options: str) -> None:
    names = [f"shoot-{number}" for number in range(shoots)]
    early, during, late = names[: shoots // 3], names[shoots // 3 : 2 * shoots // 3], names[2 * shoots // 3 :]
    file = _file(tmp_path / "landscape.yaml", shoots)
    async with a_landscape(tmp_path / "state", "-f", str(file), *options) as landscape:
        planes = ControlPlanes.of(landscape)
        await landscape.publish("garden.apply", [a_shoot(name) for name in early])
        before = await _until_placed(landscape, early)
        made = {path: planes.identities(seed, path) for path, seed in before.items()}
        old = _keep_old(landscape.directory, tmp_path)
        async with planes.watched():
            await landscape.publish("garden.apply", [a_shoot(name) for name in during])
            for service in SERVICES:
                landscape.kill(service)
            if options:
                landscape.kill_process("nats-2")
                landscape.kill_process(primary_of(landscape.directory))
            await _until_renewed(landscape)
            landscape.client.options["tls"].load_verify_locations(authorities_of(landscape.directory))
            landscape.kill("identity")
            if options:
                landscape.kill_process("nats-1")
            await landscape.publish("garden.apply", [a_shoot(name) for name in late])
            await _until_finished(landscape)
            for service in ("gardenlet", "scheduler", "apiserver"):
                landscape.kill(service)
            placed = await _until_placed(landscape, names)
        assert planes.at_once == []
        assert planes.files() == {path: {seed} for path, seed in placed.items()}
        assert {path: planes.identities(seed, path) for path, seed in before.items()} == made
        assert {path: placed[path] for path in before} == before
        rejected = await landscape.command("rejected", "-o", "json")
        assert [each for each in json.loads(rejected.stdout)["items"] if FENCED not in each["message"]] == []
        _check_authority(landscape.directory)
        await _check_servers(landscape, old)
        if options:
            await _until_whole(landscape)
    assert violations(tmp_path / "state") == []


def _keep_old(directory: Path, where: Path) -> Path:
    """Copies of a gardenlet's credentials and of the authority's certificate, as they are before the rotation."""
    (where / "old.crt").write_bytes((directory / "identity" / "ca.crt").read_bytes())
    old = where / "old.pem"
    old.write_bytes((directory / "gardenlets" / "seed-0" / "credentials.pem").read_bytes())
    return old


async def _check_servers(landscape: Landscape, old: Path) -> None:
    """Each server of NATS shows a certificate of the new authority alone, and lets nobody in with one of the old."""
    described = landscape.describe()
    trusted = Path(described["ca"])
    await until_served(described["nats_url"], trusted.read_text())
    for url in described["nats_url"].split(","):
        with pytest.raises(GardenbusError, match="SIGHUP"):
            await until_served(url, old.with_name("old.crt").read_text(), within_seconds=0)
        connection = Connection()
        with pytest.raises(GardenbusError, match="does not accept this user"):
            await connection.open(
                url,
                "gardenlet",
                on_reconnect=lambda: None,
                credentials=read_credentials(old, "", str(trusted)),
                fails_unauthorized=True,
            )
        await connection.close()


async def _until_whole(landscape: Landscape) -> None:
    """Routes, replicas and Sentinels go on: all copies of streams are current, and both replicas follow."""

    async def whole() -> None:
        doctor = await landscape.command("doctor", "-o", "json")
        findings = {each["check"]: each for each in json.loads(doctor.stdout)["findings"]}
        assert findings["nats copies"]["state"] == "ok", findings
        assert findings["redis replicas"]["found"].count("online") == 2, findings
        assert "redis sentinels" not in findings, findings

    await eventually(whole, every=2)


async def _until_finished(landscape: Landscape) -> None:
    async def finished() -> None:
        ended = await landscape.command("ca", "rotate", "--finish")
        assert ended.code == 0, ended

    await eventually(finished, every=1)


def _check_authority(directory: Path) -> None:
    """One authority is left, and all gardenlets have a certificate of it."""
    found = AuthorityRotation(directory / "identity" / "ca.crt", directory / "identity" / "ca.key").read()
    assert not found.is_rotating
    files = sorted(directory.glob("gardenlets/*/credentials.pem"))
    assert len(files) == SEEDS
    assert all(is_issued_by(read_certificate(file.read_bytes()), found.signing) for file in files)
