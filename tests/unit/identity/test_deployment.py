"""Keys of a landscape in containers: each holder gets what is its own, once, and nothing else."""

import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from gardenbus.common.api.identity.permissions import service_names
from gardenbus.common.api.identity.principals import Principal
from gardenbus.credentials.certificates import certified_principal, is_issued_by, names_of, read_certificate
from gardenbus.identity.__main__ import keys
from gardenbus.identity.deployment import Deployment, Owners, make_keys
from tests.support.files import open_to_others

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
EARTH, HARBOUR = Principal("gardenlet", "earth"), Principal("member-agent", "harbour")
DEPLOYMENT = Deployment(
    ("nats", "localhost"), {EARTH: "gardenlet-earth", HARBOUR: "memberagent"}, routes=("nats", "nats-2")
)


def contents(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    directory = tmp_path / "keys"
    directory.mkdir(mode=0o700)
    make_keys(directory, DEPLOYMENT, NOW)
    return directory


def test_each_holder_has_its_own_and_nobody_elses_and_no_authority(made: Path) -> None:
    found = contents(made)
    with_store = {name for name in service_names() if name not in ("dashboard", "kubeapi")}
    for name in service_names():
        own = {file.partition("/")[2] for file in found if file.startswith(f"{name}/")}
        served = ["server.crt", "server.key"] if name == "kubeapi" else []
        assert own == {"ca.crt", "nats.nk", *served, *(["redis.password"] if name in with_store else [])}, name
    secrets = [found[f"{name}/nats.nk"] for name in service_names()]
    assert len(set(secrets)) == len(secrets)
    signing = found["authority/ca.key"]
    assert [name for name, content in found.items() if content == signing] == ["authority/ca.key"]
    assert open_to_others(made) == []


def test_an_agents_certificate_names_it_and_is_of_the_authority(made: Path) -> None:
    authorities = x509.load_pem_x509_certificates((made / "operator" / "ca.crt").read_bytes())
    for principal, place in DEPLOYMENT.agents.items():
        pem = (made / place / principal.name / "credentials.pem").read_bytes()
        assert certified_principal(read_certificate(pem), authorities, NOW) == principal


def test_a_second_start_makes_nothing_anew(made: Path) -> None:
    before = contents(made)
    make_keys(made, DEPLOYMENT, NOW + timedelta(days=20))
    assert contents(made) == before


def test_a_later_start_replaces_what_ended_and_hands_a_new_certificate_to_the_servers(made: Path) -> None:
    before = contents(made)
    make_keys(made, DEPLOYMENT, NOW + timedelta(days=330))
    after = contents(made)
    assert {name for name in after if after[name] != before[name]} == {
        "gardenlet-earth/earth/credentials.pem",
        "memberagent/harbour/credentials.pem",
        *(f"{place}/server.{end}" for place in ("authority", "nats", "redis", "kubeapi") for end in ("crt", "key")),
    }


def test_the_servers_of_a_cluster_share_a_certificate_for_their_names_and_its_authority_signs_nothing_else(
    made: Path,
) -> None:
    before = {name: content for name, content in contents(made / "nats").items() if name.startswith("routes.")}
    assert before.keys() == {"routes.ca.crt", "routes.crt", "routes.key", "routes.conf"}
    certificate, authority = (read_certificate(before[name]) for name in ("routes.crt", "routes.ca.crt"))
    assert is_issued_by(certificate, authority)
    assert not is_issued_by(certificate, read_certificate((made / "authority" / "ca.crt").read_bytes()))
    make_keys(made, DEPLOYMENT._replace(routes=("nats", "nats-2", "nats-3")), NOW)
    after = contents(made / "nats")
    assert all(after[name] != before[name] for name in before)
    assert names_of(read_certificate(after["routes.crt"])) == {"nats", "nats-2", "nats-3"}
    password = (made / "authority" / "routes.password").read_text().strip()
    assert after["routes.conf"].decode().count(f"nats-route://route:{password}@nats") == 3


def test_a_single_server_gets_nothing_for_routes(tmp_path: Path) -> None:
    make_keys(tmp_path / "keys", DEPLOYMENT._replace(routes=()), NOW)
    assert contents(tmp_path / "keys" / "nats").keys() == {"server.crt", "server.key", "authorization.conf"}


def test_replicas_and_sentinels_come_in_by_the_passwords_that_redis_knows(made: Path) -> None:
    replica, sentinel = (
        (made / "authority" / "redis" / f"{user}.password").read_text().strip() for user in ("replica", "sentinel")
    )
    users = (made / "redis" / "users.acl").read_text()
    for password in (replica, sentinel):
        assert hashlib.sha256(password.encode()).hexdigest() in users
    assert (made / "redis" / "replication.conf").read_text() == f'masteruser replica\nmasterauth "{replica}"\n'
    lines = (made / "redis" / "sentinel.conf").read_text().splitlines()
    assert {f'sentinel auth-pass garden "{sentinel}"', f'sentinel sentinel-pass "{sentinel}"'} <= set(lines)
    assert [line.split()[1] for line in lines if line.startswith("user ")][:2] == ["default", "relay"]


def test_each_file_belongs_to_the_user_as_whom_its_container_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owned: dict[str, int] = {}

    def note(path: Path, owner: int, group: int, *, follow_symlinks: bool) -> None:
        assert (group, follow_symlinks) == (owner, False)
        owned[str(Path(path).relative_to(tmp_path))] = owner

    monkeypatch.setattr(os, "chown", note)
    make_keys(tmp_path, DEPLOYMENT, NOW, Owners(services=10001, redis=99_999, nats=88_888))
    assert owned["redis/users.acl"] == 99_999
    assert owned["nats/server.key"] == 88_888
    assert owned["relay/nats.nk"] == owned["gardenlet-earth/earth/credentials.pem"] == 10001


def test_an_agent_without_a_directory_is_a_mistake_that_is_named(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="'earth': write NAME=DIR"):
        keys([str(tmp_path), "--seed", "earth"])
