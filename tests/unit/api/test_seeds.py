import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.garden.seeds import (
    Seed,
    document_is_ready,
    is_ready,
    may_unblock,
    scheduling_content,
    shoot_capacity,
)
from gardenbus.common.errors import InvalidResource
from tests.support.builders import a_condition, a_seed, merged

BACKUP = {"backup": {"provider": "aws"}}


def conditions(*entries: Document) -> Document:
    return {"status": {"conditions": list(entries)}}


@pytest.mark.parametrize(
    ("seed", "ready"),
    [
        (a_seed(), True),
        (a_seed(ready=False), False),
        (a_seed(status={"lastOperation": None}), False),
        (a_seed(**conditions(a_condition("GardenletReady", "Unknown"))), False),
        (a_seed(**conditions(a_condition("GardenletReady"), a_condition("ExtensionsReady", "False"))), True),
        (a_seed(spec=BACKUP), False),
        (a_seed(spec=BACKUP, **conditions(a_condition("GardenletReady"), a_condition("BackupBucketsReady"))), True),
        (a_seed(**conditions(a_condition("GardenletReady"), a_condition("BackupBucketsReady", "False"))), True),
    ],
)
def test_readiness_is_gardeners(seed: Document, ready: bool) -> None:
    assert is_ready(Seed.from_document(seed)) is ready
    assert document_is_ready(seed) is ready


def test_capacity_is_the_next_whole_number_and_none_without_the_key() -> None:
    assert shoot_capacity(a_seed(shoots="1500m")) == 2
    assert shoot_capacity(a_seed(shoots=4)) == 4
    assert shoot_capacity(a_seed(shoots=None)) is None
    assert shoot_capacity(a_seed(ready=False)) is None


def test_heartbeats_do_not_move_the_gate() -> None:
    later = a_condition("GardenletReady", lastUpdateTime="2027-01-01T00:00:00Z", message="still well")
    assert scheduling_content(a_seed()) == scheduling_content(
        a_seed(**conditions(later), metadata={"annotations": {"a": "b"}})
    )


MARKED: Document = {"metadata": {"annotations": {REMOVAL_ANNOTATION: "garden/aws"}}}


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": {"taints": [{"key": "a"}]}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"metadata": {"annotations": {"shoot.gardener.cloud/emergency-stop-reconciliations": "true"}}},
        {"status": {"conditions": [a_condition("GardenletReady", "Unknown")]}},
        MARKED,
    ],
)
def test_what_a_bind_depends_on_moves_the_gate(changes: Document) -> None:
    assert scheduling_content(a_seed()) != scheduling_content(a_seed(**changes))


OLD = a_seed(shoots="2")


@pytest.mark.parametrize(
    ("old", "new", "unblocks"),
    [
        (None, OLD, True),
        (None, a_seed(ready=False), False),
        (OLD, None, True),
        (a_seed(ready=False), None, False),
        (a_seed(ready=False), a_seed(ready=False, metadata={"labels": {"a": "b"}}), False),
        (OLD, OLD, False),
        (OLD, a_seed(shoots="3"), True),
        (OLD, a_seed(shoots="1"), False),
        (OLD, a_seed(shoots=None), True),
        (a_seed(ready=False), OLD, True),
        (OLD, merged(OLD, {"spec": {"taints": []}}), True),
        (OLD, merged(OLD, {"metadata": {"labels": {"x": "y"}}}), True),
        (OLD, merged(OLD, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), True),
        (OLD, merged(OLD, {"spec": {"settings": {"scheduling": {"visible": False}}}}), True),
        (OLD, merged(OLD, MARKED), True),
        (merged(OLD, MARKED), OLD, True),
        (merged(OLD, MARKED), merged(OLD, {**MARKED, "spec": {"taints": []}}), False),
        (merged(OLD, MARKED), None, False),
    ],
)
def test_a_gain_is_what_may_make_something_fit(old: Document | None, new: Document | None, unblocks: bool) -> None:
    assert may_unblock(old, new) is unblocks


def test_null_counts_as_absent_and_a_wrong_type_has_its_path() -> None:
    seed = a_seed(metadata={"labels": {}})
    seed["metadata"]["labels"] = None
    assert Seed.from_document(seed).metadata.labels == {}
    with pytest.raises(InvalidResource, match=r"spec\.provider\.zones"):
        Seed.from_document(a_seed(spec={"provider": {"zones": "a"}}))
