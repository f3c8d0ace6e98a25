"""The certificate authority is rotated while shoots are placed and services die: nothing is lost or torn down."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import nats.errors
import pytest
import yaml

from gardenbus.credentials.authority_rotation import AuthorityRotation
from gardenbus.credentials.certificates import is_issued_by, read_certificate
from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot
from tests.support.control_planes import ControlPlanes
from tests.support.eventually import eventually
from tests.support.landscape import Landscape, a_landscape, violations

pytestmark = pytest.mark.slow

SHOOTS = int(os.environ.get("GARDENBUS_ROTATION_SHOOTS", "60"))
"""500 in docs/certificates.md."""

FENCED = "is too old"
"""What a gardenlet that was killed had sent last may arrive when the next one is active: it does not count."""

SEEDS = 4
SERVICES = ("identity", "gardenlet", "apiserver", "relay", "scheduler")
NAMESPACE = "garden-dev"


def _file(path: Path) -> Path:
    path.write_text(
        yaml.safe_dump_all(
            [
                *(a_gardenlet_configuration(f"seed-{number}", SHOOTS // SEEDS + 5) for number in range(SEEDS)),
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

    return await eventually(placed, within=60 + SHOOTS, every=0.5)


async def _until_renewed(landscape: Landscape) -> None:
    """Rotate until nobody is left with a certificate of the old authority, whatever dies meanwhile."""

    async def renewed() -> None:
        ended = await landscape.command("ca", "rotate")
        assert "everybody has a certificate of the new one" in ended.stdout, ended

    await eventually(renewed, within=120, every=1)


async def test_nothing_is_lost_doubled_or_torn_down(tmp_path: Path) -> None:
    names = [f"shoot-{number}" for number in range(SHOOTS)]
    early, during, late = names[: SHOOTS // 3], names[SHOOTS // 3 : 2 * SHOOTS // 3], names[2 * SHOOTS // 3 :]
    async with a_landscape(tmp_path / "state", "-f", str(_file(tmp_path / "landscape.yaml"))) as landscape:
        planes = ControlPlanes.of(landscape)
        await landscape.publish("garden.apply", [a_shoot(name) for name in early])
        before = await _until_placed(landscape, early)
        made = {path: planes.identities(seed, path) for path, seed in before.items()}
        async with planes.watched():
            await landscape.publish("garden.apply", [a_shoot(name) for name in during])
            for service in SERVICES:
                landscape.kill(service)
            await _until_renewed(landscape)
            landscape.kill("identity")
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
    assert violations(tmp_path / "state") == []


async def _until_finished(landscape: Landscape) -> None:
    async def finished() -> None:
        ended = await landscape.command("ca", "rotate", "--finish")
        assert ended.code == 0, ended

    await eventually(finished, within=60, every=1)


def _check_authority(directory: Path) -> None:
    """One authority is left, and all gardenlets have a certificate of it."""
    found = AuthorityRotation(directory / "identity" / "ca.crt", directory / "identity" / "ca.key").read()
    assert not found.is_rotating
    files = sorted(directory.glob("gardenlets/*/credentials.pem"))
    assert len(files) == SEEDS
    assert all(is_issued_by(read_certificate(file.read_bytes()), found.signing) for file in files)
