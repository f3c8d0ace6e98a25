"""The memory of what was sent before stays small, whatever is sent."""

import contextlib
import gc
import tracemalloc

from gardenbus.apiserver.domain.field_validation import manifest_review
from gardenbus.apiserver.domain.fields.check import compiled_shapes, field_faults
from gardenbus.common.api.document import Document
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.fields.kinds import sent_shape
from gardenbus.common.api.garden.seeds import SeedNetworks
from gardenbus.common.api.garden.shoot_networks import Ranges, network_problems
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.short_cache import short_cache
from gardenbus.common.errors import GardenbusError

GROUP = "core.gardener.cloud/v1beta1"
NETWORKS = SeedNetworks()
INPUTS = 20_000
MEBIBYTE = 2**20


def test_a_short_cache_remembers_what_is_short_only() -> None:
    calls: list[str] = []

    @short_cache(10, longest=20)
    def counted(*texts: object) -> int:
        calls.append(str(texts))
        return len(calls)

    assert counted("a", "b") == counted("a", "b") == 1
    assert counted("x" * 21) != counted("x" * 21)
    assert counted(("a",) * 21) != counted(("a",) * 21)
    for number in range(100):
        counted(str(number))
    assert counted("a", "b") == len(calls), "it was pushed out"


def test_thousands_of_junk_manifests_leave_next_to_nothing() -> None:
    feed(0, 2000)  # what is kept of anything
    shapes = compiled_shapes()
    gc.collect()
    tracemalloc.start()
    try:
        feed(2000, INPUTS)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert compiled_shapes() == shapes, "a shape was made again, and what was made of it stays for ever"
    assert grown < 8 * MEBIBYTE, f"{grown / MEBIBYTE:.1f} MiB stay of {INPUTS} bad manifests"


def feed(start: int, end: int) -> None:
    """Bad manifests: of unknown kinds, with known ones between them, and texts of any length."""
    for number in range(start, end):
        long = f"{number}-" + "x" * (100_000 if number % 100 == 0 else 300)
        given: Document = {"apiVersion": f"apps/v{number}", "kind": f"Junk{long}", "spec": {}}
        with contextlib.suppress(GardenbusError):
            manifest_review(given, ObjectKey("shoot", "garden-dev", "a"), FieldValidation.STRICT)(None)
        network_problems(Ranges(nodes=f"{number}/{long}", pods=long, services=long), NETWORKS)
        if number % 500 == 0:
            for kind in ("Shoot", "Seed"):
                shape = sent_shape(GROUP, kind)
                assert shape is not None
                assert not field_faults({"spec": {}}, shape, kind=kind)
