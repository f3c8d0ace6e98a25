"""Authorities last; certificates are made of them, and anew when most of their life is over or they do not fit."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509

from gardenbus.credentials.certificates import read_certificate
from gardenbus.gardenlet.backend.pki import admin_certificate, authority_of, new_secrets, write_keys, write_kubeconfig
from gardenbus.gardenlet.domain.control_plane import LEAF_LIFE, ClusterParameters, certificates
from tests.support.files import open_to_others

INSTANT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CLUSTER = ClusterParameters(technical_id="shoot--dev--apollo", version="1.34.4")
WANTED = certificates(CLUSTER, "127.0.0.1")
NAMES = [each.name for each in WANTED]
SECRETS = new_secrets("shoot--dev--apollo", INSTANT)


def test_certificates_are_made_once_and_renewed_at_four_fifths_of_their_life(tmp_path: Path) -> None:
    assert write_keys(tmp_path, SECRETS, WANTED, INSTANT) == NAMES
    assert write_keys(tmp_path, SECRETS, WANTED, INSTANT + 0.79 * LEAF_LIFE) == []
    assert write_keys(tmp_path, SECRETS, WANTED, INSTANT + 0.81 * LEAF_LIFE) == NAMES
    assert write_keys(tmp_path, SECRETS, WANTED, INSTANT + 5 * LEAF_LIFE) == NAMES


def test_a_certificate_is_made_anew_when_a_name_is_missing_in_it_or_it_is_of_another_authority(tmp_path: Path) -> None:
    write_keys(tmp_path, SECRETS, WANTED, INSTANT)
    moved = certificates(CLUSTER, "10.0.0.7")
    assert write_keys(tmp_path, SECRETS, moved, INSTANT) == ["etcd", "kube-apiserver"]
    assert write_keys(tmp_path, new_secrets("other", INSTANT), WANTED, INSTANT) == NAMES
    (tmp_path / "gardenlet.crt").write_text("no certificate")
    (tmp_path / "etcd.key").unlink()
    assert len(write_keys(tmp_path, SECRETS, WANTED, INSTANT)) == len(NAMES)


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    directory = tmp_path / "pki"
    write_keys(directory, SECRETS, WANTED, INSTANT)
    write_kubeconfig(directory, "kube-scheduler", "https://127.0.0.1:20000")
    assert open_to_others(directory) == []
    written = yaml.safe_load((directory / "kube-scheduler.kubeconfig").read_text())
    assert written["users"][0]["user"]["client-certificate"] == str(directory / "kube-scheduler.crt")


def test_an_administrators_certificate_ends_when_it_was_asked_to() -> None:
    issued = read_certificate(admin_certificate(SECRETS, "ann", INSTANT, timedelta(hours=1)).certificate)
    issued.verify_directly_issued_by(authority_of(SECRETS, "ca").certificate)
    assert issued.not_valid_after_utc == INSTANT + timedelta(hours=1)
    subject = {attribute.oid: attribute.value for attribute in issued.subject}
    assert subject == {x509.NameOID.ORGANIZATION_NAME: "system:masters", x509.NameOID.COMMON_NAME: "ann"}
