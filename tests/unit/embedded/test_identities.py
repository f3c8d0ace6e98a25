"""Identities of an embedded landscape: what NATS' configuration and the services' settings are made of."""

from pathlib import Path

from gardenbus.common.api.identity.permissions import Permissions
from gardenbus.common.api.keys import Subjects
from gardenbus.embedded.identities import EmbeddedIdentities


def test_without_tls_everybody_proves_who_they_are_all_the_same(tmp_path: Path) -> None:
    with_tls = EmbeddedIdentities(tmp_path, Subjects())
    without = EmbeddedIdentities(tmp_path, Subjects(), has_tls=False)
    assert with_tls.server_configuration().endswith(without.server_configuration())
    assert "tls {" in with_tls.server_configuration()
    assert "tls {" not in without.server_configuration()
    for role in ("relay", "gardenlet", "identity"):
        trust = {"GARDENBUS_NATS_CA": str(tmp_path / "ca.crt")}
        assert with_tls.environ(role) == without.environ(role) | trust


def test_other_users_have_the_rights_that_are_said(tmp_path: Path) -> None:
    others = {"bench": Permissions(("garden.one",), ("garden.two",))}
    text = EmbeddedIdentities(tmp_path, Subjects(), others=others).server_configuration()
    assert 'permissions: { publish: ["garden.one"], subscribe: ["garden.two"] }' in text
    assert (tmp_path / "services" / "bench.nk").exists()
