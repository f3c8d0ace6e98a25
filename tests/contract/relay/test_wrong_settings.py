"""A service whose settings are wrong ends at once with exit code 2, and reports each of them on a line."""

import os
import subprocess
import sys

import pytest

from tests.support.eventually import HANG_SECONDS

APPEND = "append it, as in /garden"


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
