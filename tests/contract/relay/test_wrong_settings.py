"""A service whose settings are wrong ends at once with exit code 2, and reports each of them on a line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.eventually import HANG_SECONDS

APPEND = "append it, as in /garden"
MEANT = "did you mean SeedResourcesFit?"


@pytest.mark.parametrize("service", ["relay", "apiserver", "dashboard"])
def test_it_names_each_variable_what_is_wrong_and_what_would_be_right(service: str) -> None:
    wrong = {
        "GARDENBUS_NATS_URL": "nats://h1:4222,nats://h2:99999",
        "GARDENBUS_REDIS_URL": "redis+sentinel://me:secret@h1,h2,h3",
        "GARDENBUS_STREAM_REPLICAS": "2",
        "GARDENBUS_NATS_SYNC_ALWAYS": "power",
    }
    ended = subprocess.run(
        [sys.executable, "-m", f"gardenbus.{service}"],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        env={**os.environ, **wrong},
    )
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        f"{service}: GARDENBUS_NATS_URL: 'nats://h2:99999' is no NATS address: write nats://host:port",
        f"{service}: GARDENBUS_STREAM_REPLICAS: '2' is none of 0, 1, 3, 5",
        f"{service}: GARDENBUS_NATS_SYNC_ALWAYS: 'power' is none of true, false",
        f"{service}: GARDENBUS_REDIS_URL: the address of Sentinels lacks the name of their master: {APPEND}",
    ]


def test_a_scheduler_does_not_start_with_profiles_that_cannot_be_meant_and_names_all_problems(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("""\
apiVersion: scheduler.config.gardener.cloud/v1alpha1
kind: SchedulerConfiguration
profiles:
- schedulerName: one
  plugins: {score: {enabled: [{name: SeedZoneFit, weight: 0}, {name: NodeResourcesFit}]}}
- schedulerName: one
  preset: spread
  pluginConfig: [{name: MinimalDistance, args: {farthest: far}}]
- schedulerName: two
  plugins: {score: {enabled: [{name: SeedZoneFit, weight: 101}]}}
""")
    ended = subprocess.run(
        [sys.executable, "-m", "gardenbus.scheduler", "--config", str(file)],
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert ended.returncode == 2
    assert sorted(ended.stderr.splitlines()) == [
        "scheduler: profiles[0].plugins.score.enabled[0].weight: must be a whole number from 1 to 100, is 0",
        f"scheduler: profiles[0].plugins.score.enabled[1].name: there is no such plug-in: NodeResourcesFit; {MEANT}",
        "scheduler: profiles[1].pluginConfig[0].args.farthest: must be a whole number above 0, is 'far'",
        "scheduler: profiles[1].pluginConfig[0].name: MinimalDistance is not enabled in this profile",
        "scheduler: profiles[1].schedulerName: 'one' is the name of profiles[0] too",
        "scheduler: profiles[2].plugins.score.enabled[0].weight: must be a whole number from 1 to 100, is 101",
    ]
