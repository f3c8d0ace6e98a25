"""Gardener's own manifests through the strict `apply` of a running landscape."""

import pytest

from tests.support.landscape import Landscape
from tests.support.shared_files import required_shared

pytestmark = pytest.mark.slow


async def test_a_strict_apply_calls_no_field_of_theirs_unknown(hosting: Landscape):
    folders = [word for name in ("examples", "golden") for word in ("-f", str(required_shared(name)))]
    applied = await hosting.command("apply", "--validate=strict", "--dry-run=server", *folders)
    assert "is no field of a" not in applied.stderr
    assert "warning: seed my-seed: spec.settings.dependencyWatchdog: nothing acts on it" in applied.stderr
    assert applied.stdout.count(" (server dry run)\n") > 300, applied.stderr[-2000:]
