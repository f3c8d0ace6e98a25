"""Plants a loop in the apiserver: so many rounds for each manifest that it reads."""

import os
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).parents[1]))

import chained

ROUNDS = int(os.environ.get("PLANTED_ROUNDS", "0"))


def loop_for_each_manifest() -> int:
    return sum(number % 7 for number in range(ROUNDS))


if "gardenbus.apiserver" in sys.orig_argv:
    from gardenbus.common.api.manifests import fast_json

    read_before = fast_json.read_fast

    def read_with_a_loop(body: bytes) -> object:
        loop_for_each_manifest()
        return read_before(body)

    fast_json.read_fast = read_with_a_loop

chained.start_others(__file__)
