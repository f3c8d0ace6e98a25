"""The kubeconfig of a landscape: whose credentials stand in it, and in which fields."""

import base64
from pathlib import Path

import yaml

from gardenbus.cli.client.kubeconfigs import landscape_kubeconfig
from gardenbus.cli.client.targets import LandscapeTarget

CERTIFICATE = b"-----BEGIN CERTIFICATE-----\nY2VydA==\n-----END CERTIFICATE-----\n"
KEY = b"-----BEGIN PRIVATE KEY-----\na2V5\n-----END PRIVATE KEY-----\n"


def test_a_certificate_and_its_key_stand_each_in_its_own_field(tmp_path: Path) -> None:
    file = tmp_path / "ann.pem"
    file.write_bytes(KEY + CERTIFICATE)
    target = LandscapeTarget(nats_url="nats://127.0.0.1:4222", prefix="garden", credentials=file)
    (user,) = yaml.safe_load(landscape_kubeconfig(target, "https://127.0.0.1:6443", "default"))["users"]
    decoded = {name: base64.b64decode(text) for name, text in user["user"].items()}
    assert decoded == {"client-certificate-data": CERTIFICATE, "client-key-data": KEY}
