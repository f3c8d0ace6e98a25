"""The kubeconfig of a landscape: whose credentials stand in it, and in which fields."""

import base64
from pathlib import Path

import pytest
import typer
import yaml

from gardenbus.cli.client.kubeconfigs import landscape_kubeconfig
from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.commands.kubeconfig import show
from gardenbus.cli.output.console import Exit

CERTIFICATE = b"-----BEGIN CERTIFICATE-----\nY2VydA==\n-----END CERTIFICATE-----\n"
KEY = b"-----BEGIN PRIVATE KEY-----\na2V5\n-----END PRIVATE KEY-----\n"


def test_a_certificate_and_its_key_stand_each_in_its_own_field(tmp_path: Path) -> None:
    file = tmp_path / "ann.pem"
    file.write_bytes(KEY + CERTIFICATE)
    target = LandscapeTarget(nats_url="nats://127.0.0.1:4222", prefix="garden", credentials=file)
    (user,) = yaml.safe_load(landscape_kubeconfig(target, "https://127.0.0.1:6443", "default"))["users"]
    decoded = {name: base64.b64decode(text) for name, text in user["user"].items()}
    assert decoded == {"client-certificate-data": CERTIFICATE, "client-key-data": KEY}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        show("apiVersion: v1\n", tmp_path, "leads to the landscape")
    assert ended.value.exit_code == Exit.USAGE
    assert f"--file: {tmp_path} cannot be written" in " ".join(capsys.readouterr().err.split())
