"""The example of a client on plain NATS, against a landscape with TLS."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.builders import a_shoot, merged
from tests.support.eventually import HANG_SECONDS

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples/nats-clients/order_shoot.py"


def run(host: Path, manifest: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), str(host), str(manifest)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)


def test_it_orders_a_shoot_and_waits_for_its_seed(host: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "shoot.json"
    manifest.write_text(json.dumps(a_shoot("from-python")))
    ended = run(host, manifest)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("from-python is on ")


def test_a_rejection_names_the_field(host: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "shoot.json"
    manifest.write_text(json.dumps(merged(a_shoot("wrong"), {"spec": {"region": ""}})))
    ended = run(host, manifest)
    assert ended.returncode == 1
    assert "spec.region" in ended.stderr
