"""Operations that rotate credentials: which is accepted in which state of the shoot, as in Gardener."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.shoot_operations import MAINTENANCE_OPERATION, OPERATION
from tests.support.builders import a_shoot, merged
from tests.unit.api.test_rules_by_kind import fields_of

NOW, LATER = (f"metadata.annotations[{name}]" for name in (OPERATION, MAINTENANCE_OPERATION))
CA, KEY, ETCD = "certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey"
CREATED: Document = {"lastOperation": {"type": "Create", "state": "Succeeded"}}
WITHOUT = "-start-without-workers-rollout"
POOLS = [{"name": "a"}, {"name": "b", "updateStrategy": "AutoInPlaceUpdate"}]


def a_running(version: str = "1.33.6", **status: Any) -> Document:
    """A shoot that was created, with two worker pools."""
    spec = {"kubernetes": {"version": version}, "provider": {"workers": POOLS}}
    return a_shoot(spec=spec, status={**CREATED, **status})


def in_phase(*rotated: str, phase: str = "Prepared") -> Document:
    """The status of credentials in a phase of their rotation."""
    return {"credentials": {"rotation": {field: {"phase": phase} for field in rotated}}}


def requested(shoot: Document, operations: str = "", later: str = "") -> list[str]:
    """The fields at fault when operations are requested of a stored shoot, now and for its maintenance."""
    annotations = {name: value for name, value in ((OPERATION, operations), (MAINTENANCE_OPERATION, later)) if value}
    return fields_of(merged(shoot, {"metadata": {"annotations": annotations}}), shoot)


STARTS = [
    *((f"rotate-credentials{end}", (CA, KEY, ETCD)) for end in ("-start", WITHOUT)),
    *((f"rotate-ca{end}", (CA,)) for end in ("-start", WITHOUT)),
    *((f"rotate-serviceaccount-key{end}", (KEY,)) for end in ("-start", WITHOUT)),
    *((f"rotate-etcd-encryption-key{end}", (ETCD,)) for end in ("", "-start")),
]
COMPLETIONS = [
    ("rotate-credentials-complete", (CA, KEY, ETCD)),
    ("rotate-ca-complete", (CA,)),
    ("rotate-serviceaccount-key-complete", (KEY,)),
    ("rotate-etcd-encryption-key-complete", (ETCD,)),
]
PHASES = ("Preparing", "PreparingWithoutWorkersRollout", "WaitingForWorkersRollout", "Prepared", "Completing")


@pytest.mark.parametrize(("operation", "rotated"), STARTS)
def test_a_rotation_starts_where_none_is_under_way(operation: str, rotated: tuple[str, ...]) -> None:
    assert requested(a_running(), operation) == requested(a_running(), later=operation) == []
    assert requested(a_running(**in_phase(*rotated, phase="Completed")), operation) == []
    for field in rotated:
        for phase in PHASES:
            busy = a_running(**in_phase(field, phase=phase))
            assert requested(busy, operation) == [NOW], phase
            assert requested(busy, later=operation) == [LATER], phase
    others = {CA, KEY, ETCD} - set(rotated)
    assert requested(a_running(**in_phase(*others, phase="Preparing")), operation) == []


@pytest.mark.parametrize(("operation", "_rotated"), STARTS)
@pytest.mark.parametrize(
    ("last", "is_taken"),
    [
        (None, False),
        ({"type": "Create", "state": "Processing"}, False),
        ({"type": "Create", "state": "Failed"}, False),
        ({"type": "Restore", "state": "Error"}, False),
        ({"type": "Delete", "state": "Processing"}, False),
        ({"type": "Migrate", "state": "Succeeded"}, False),
        ({"type": "Restore", "state": "Succeeded"}, True),
        ({"type": "Reconcile", "state": "Processing"}, True),
        ({"type": "Reconcile", "state": "Failed"}, True),
    ],
)
def test_a_rotation_starts_in_a_shoot_that_was_created(
    operation: str, _rotated: object, last: Document | None, *, is_taken: bool
) -> None:
    assert requested(a_running(lastOperation=last), operation) == ([] if is_taken else [NOW])


@pytest.mark.parametrize(("operation", "rotated"), COMPLETIONS)
def test_a_rotation_ends_where_all_is_prepared(operation: str, rotated: tuple[str, ...]) -> None:
    assert requested(a_running(**in_phase(*rotated)), operation) == []
    assert requested(a_running(), operation) == [NOW]
    for field in rotated:
        for phase in {*PHASES, "Completed"} - {"Prepared"}:
            partly = merged(in_phase(*rotated), in_phase(field, phase=phase))
            assert requested(a_running(**partly), operation) == [NOW]


def test_from_1_34_the_key_of_etcd_is_rotated_in_one_go() -> None:
    for operation in ("rotate-etcd-encryption-key-start", "rotate-etcd-encryption-key-complete"):
        assert requested(a_running("1.34.0", **in_phase(ETCD)), operation) == [NOW]
    assert requested(a_running("1.34.0"), "rotate-etcd-encryption-key") == []
    assert requested(a_running("1.34.0", **in_phase(CA, KEY)), "rotate-credentials-complete") == []
    assert requested(a_running("1.33.9", **in_phase(CA, KEY)), "rotate-credentials-complete") == [NOW]


def test_a_new_shoot_rotates_nothing_and_other_names_are_no_operations() -> None:
    new = merged(a_shoot(), {"metadata": {"annotations": {OPERATION: "rotate-ca-start"}}})
    assert fields_of(new) == [NOW]
    for name in ("rotate-foo", "rotate-", "rotate-ca", "rotate-ca-complete-without-workers-rollout", "rollout-"):
        assert requested(a_running(), name) == [NOW]
    for name in ("rotate-ssh-keypair", "rotate-observability-credentials"):
        assert requested(a_running(), name) == requested(a_running(), later=name) == []


@pytest.mark.parametrize(
    ("now", "later", "at_fault"),
    [
        ("rotate-ca-start;rotate-serviceaccount-key-start", "", set[str]()),
        ("rotate-credentials-start;rotate-ca-start", "", set[str]()),
        ("rotate-ca-start;reconcile;rotate-ssh-keypair", "", set[str]()),
        (f"rotate-ca-start;rotate-ca{WITHOUT}", "", {NOW}),
        (f"rotate-credentials-start;rotate-serviceaccount-key{WITHOUT}", "", {NOW}),
        (f"rotate-credentials{WITHOUT};rotate-ca-start", "", {NOW}),
        (f"rotate-credentials{WITHOUT};rotate-etcd-encryption-key", "", set[str]()),
        ("rotate-etcd-encryption-key;rotate-etcd-encryption-key-start", "", {NOW}),
        ("rotate-ca-start", "rotate-ca-start", {NOW, LATER}),
        ("rotate-ca-start", "rotate-credentials-start", {NOW, LATER}),
        ("rotate-credentials-start", f"rotate-serviceaccount-key{WITHOUT}", {NOW, LATER}),
        ("rotate-credentials-start", "rotate-ssh-keypair", set[str]()),
        ("maintain;reconcile", "", {NOW}),
        ("retry;rotate-ca-start", "", {NOW}),
        ("force-in-place-update;reconcile", "", {NOW}),
    ],
)
def test_some_operations_do_not_go_with_others(now: str, later: str, at_fault: set[str]) -> None:
    assert set(requested(a_running(), now, later)) == at_fault


@pytest.mark.parametrize(
    ("operation", "is_taken"),
    [
        *(("rollout-workers=a", True), ("rollout-workers=*", False), ("rollout-workers=b", False)),
        *(("rollout-workers", False), ("rollout-workers=", False), ("rollout-workers=a,a", False)),
        *(("rollout-workers=a,", False), ("rollout-workers=c", False), ("rollout-workers=a,*", False)),
        *(("rotate-rollout-workers=a", False), ("rollout-workersa", False)),
    ],
)
def test_workers_are_rolled_out_by_their_names(operation: str, *, is_taken: bool) -> None:
    assert requested(a_running(), operation) == ([] if is_taken else [NOW])


def test_a_rotation_that_waits_for_its_workers_has_them_rolled_out() -> None:
    for field in (CA, KEY):
        waiting = a_running(**in_phase(field, phase="WaitingForWorkersRollout"))
        assert requested(waiting, "rotate-rollout-workers=a,b") == []
        assert requested(waiting, "rotate-rollout-workers=*") == [NOW]
        assert requested(waiting, "rotate-rollout-workers=") == [NOW]


def test_a_sleeping_cluster_rotates_no_more_than_its_authorities() -> None:
    for asleep in (merged(a_running(), {"spec": {"hibernation": {"enabled": True}}}), a_running(hibernated=True)):
        assert requested(asleep, "rotate-ca-start") == requested(asleep, "rotate-ssh-keypair") == []
        for operation in ("rotate-credentials-start", "rotate-etcd-encryption-key", "rollout-workers=a"):
            assert requested(asleep, operation) == [NOW]
            assert requested(asleep, later=operation) == [LATER]


def asleep(shoot: Document) -> list[str]:
    """The fields at fault when a stored shoot is put to sleep."""
    return fields_of(merged(shoot, {"spec": {"hibernation": {"enabled": True}}}), shoot)


def test_a_cluster_does_not_fall_asleep_over_a_rotation() -> None:
    field = ["spec.hibernation.enabled"]
    assert asleep(a_running()) == asleep(a_running(**in_phase(KEY, ETCD))) == []
    assert asleep(a_running(**in_phase(ETCD, phase="Preparing"))) == field
    assert asleep(a_running(**in_phase(KEY, phase="PreparingWithoutWorkersRollout"))) == field
    assert asleep(a_running(**in_phase(CA, phase="Preparing"))) == []
    planned = merged(a_running(), {"metadata": {"annotations": {MAINTENANCE_OPERATION: "rotate-credentials-start"}}})
    assert asleep(planned) == field
    sleeping = merged(planned, {"spec": {"hibernation": {"enabled": True}}})
    assert fields_of(merged(sleeping, {"metadata": {"labels": {"a": "b"}}}), sleeping) == []


def test_what_was_requested_before_it_was_checked_is_in_the_way_of_nothing() -> None:
    stored = merged(a_running(), {"metadata": {"annotations": {OPERATION: "rotate-foo;rotate-ca-complete"}}})
    assert fields_of(merged(stored, {"spec": {"purpose": "testing"}}), stored) == []
    moved = merged(stored, {"metadata": {"annotations": {OPERATION: None, MAINTENANCE_OPERATION: "rotate-foo"}}})
    assert fields_of(moved, stored) == []


def test_a_shoot_that_is_deleted_has_no_maintenance_for_its_operations() -> None:
    deleted = merged(a_running(), {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert requested(deleted, later="rotate-ca-complete") == []
    assert requested(deleted, "rotate-ca-complete") == [NOW]
