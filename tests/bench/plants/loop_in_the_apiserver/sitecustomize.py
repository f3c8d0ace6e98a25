"""Plants a loop in the apiserver: so much CPU for each manifest that it reads."""

import os
import sys
import time
from pathlib import Path

sys.path.insert(1, str(Path(__file__).parents[1]))

import chained

PLANTED_SECONDS = float(os.environ.get("PLANTED_SECONDS", "0"))


def loop_for_each_manifest() -> None:
    ends_at = time.thread_time() + PLANTED_SECONDS
    while time.thread_time() < ends_at:
        pass


if "gardenbus.apiserver" in sys.orig_argv:
    from gardenbus.common.api.manifests import fast_json

    read_before = fast_json.read_fast

    def read_with_a_loop(body: bytes) -> object:
        loop_for_each_manifest()
        return read_before(body)

    fast_json.read_fast = read_with_a_loop

chained.start_others(__file__)
