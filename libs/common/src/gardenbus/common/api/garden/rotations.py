"""Rotations of a Shoot's credentials: which may be requested in which state of the shoot.

| operation | needs |
|---|---|
| rotate-…-start, rotate-etcd-encryption-key | a shoot that was created; a phase that is empty or Completed |
| rotate-…-complete | the phase Prepared of each that is rotated |
| rotate-rollout-workers=a,b | a phase that waits for the rollout; pools that there are |
| rollout-workers=a,b or * | pools that there are, and that are not updated in place |
| rotate-ssh-keypair, rotate-observability-credentials | nothing |

Source: `validateShootOperation` and `validateHibernationUpdate` in Gardener's `pkg/api/core/validation/shoot.go`.
"""

from collections.abc import Collection, Mapping, Sequence

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.expirable_versions import numbers_of
from gardenbus.common.api.garden.hibernation import is_hibernation_enabled

_CA, _KEY, _ETCD = "certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey"
_ROLLOUTS = ("rotate-rollout-workers", "rollout-workers")
_WITHOUT_ROLLOUT = "-start-without-workers-rollout"
_IN_PLACE = ("AutoInPlaceUpdate", "ManualInPlaceUpdate")
_WAITING = "WaitingForWorkersRollout"
_IN_ONE_GO = (1, 34)
"""The version of Kubernetes from which the key of etcd is rotated in one operation."""

_ETCD_STARTS = ("rotate-etcd-encryption-key", "rotate-etcd-encryption-key-start")
_STARTS: Mapping[str, Sequence[str]] = {
    **{f"rotate-credentials{end}": (_CA, _KEY, _ETCD) for end in ("-start", _WITHOUT_ROLLOUT)},
    **{f"rotate-ca{end}": (_CA,) for end in ("-start", _WITHOUT_ROLLOUT)},
    **{f"rotate-serviceaccount-key{end}": (_KEY,) for end in ("-start", _WITHOUT_ROLLOUT)},
    **dict.fromkeys(_ETCD_STARTS, (_ETCD,)),
}
_COMPLETIONS: Mapping[str, Sequence[str]] = {
    "rotate-credentials-complete": (_CA, _KEY, _ETCD),
    "rotate-ca-complete": (_CA,),
    "rotate-serviceaccount-key-complete": (_KEY,),
    "rotate-etcd-encryption-key-complete": (_ETCD,),
}
"""Operations, and the fields of `status.credentials.rotation` that they begin, or end."""

_IN_TWO_STEPS = ("rotate-etcd-encryption-key-start", "rotate-etcd-encryption-key-complete")
_AWAKE = frozenset(each for each in {**_STARTS, **_COMPLETIONS} if not each.startswith("rotate-ca-"))
"""Operations that a sleeping cluster cannot carry out; rollouts of workers are others."""

_BUSY_PHASES: Mapping[str, Sequence[str]] = {
    _ETCD: ("Preparing", "Completing"),
    _KEY: ("Preparing", "PreparingWithoutWorkersRollout", "Completing"),
}
"""Phases in which a cluster is not put to sleep."""


def is_rotation(operation: str) -> bool:
    """True for a rotation or rollout that there is."""
    others = ("rotate-ssh-keypair", "rotate-observability-credentials")
    return operation in _STARTS or operation in _COMPLETIONS or operation in others or operation.startswith(_ROLLOUTS)


def collision(operation: str, beside: Collection[str], elsewhere: Collection[str]) -> str:
    """The first other operation that one cannot go with, in its own annotation or elsewhere; "" when there is none.

    One annotation rotates a credential with the rollout of workers or without, and the key of etcd once. What rotates
    all credentials does not go with a part of it in the other annotation.
    """
    for other in sorted(beside):
        shared = _rotated(operation) & _rotated(other)
        is_without = [each.endswith(_WITHOUT_ROLLOUT) for each in (operation, other)]
        if (shared - {_ETCD} and is_without[0] != is_without[1]) or {operation, other} == set(_ETCD_STARTS):
            return other
    for other in sorted(elsewhere):
        is_of_all = [each.startswith("rotate-credentials-") for each in (operation, other)]
        is_end = [each in _COMPLETIONS for each in (operation, other)]
        if _rotated(operation) & _rotated(other) and is_of_all[0] != is_of_all[1] and is_end[0] == is_end[1]:
            return other
    return ""


def _rotated(operation: str) -> set[str]:
    return {*_STARTS.get(operation, ()), *_COMPLETIONS.get(operation, ())}


def rotation_problem(operation: str, shoot: Document) -> str:
    """Return why a rotation cannot be requested of a shoot now; "" when it can."""
    version = numbers_of(section(shoot, "spec", "kubernetes").get("version"))[:2]
    if operation in _IN_TWO_STEPS and version >= _IN_ONE_GO:
        return "is for Kubernetes before 1.34: write rotate-etcd-encryption-key"
    if (operation in _AWAKE or operation.startswith(_ROLLOUTS)) and _is_asleep(shoot):
        return "is not for a shoot that is hibernated or wakes up"
    phases = _phases(shoot)
    for field in _STARTS.get(operation, ()):
        if not was_created(section(shoot, "status")):
            return "is for a shoot that was created successfully: wait for it"
        if (phase := phases.get(field, "")) not in ("", "Completed"):
            return f"begins again when {_path(field)} is Completed: it is {phase}"
    for field in _COMPLETIONS.get(operation, ()):
        is_needed = field != _ETCD or operation in _IN_TWO_STEPS or version < _IN_ONE_GO
        if is_needed and (phase := phases.get(field, "")) != "Prepared":
            return f"ends a rotation where {_path(field)} is Prepared: it is {phase or 'not set'}"
    return _pool_problem(operation, shoot, phases) if operation.startswith(_ROLLOUTS) else ""


def hibernation_problem(shoot: Document, operations: Collection[str]) -> str:
    """Return why a shoot, of which operations are requested in its window, cannot sleep; "" when it can."""
    for field, busy in _BUSY_PHASES.items():
        if (phase := _phases(shoot).get(field, "")) in busy:
            return f"cannot be while {_path(field)} is {phase}: wait until the rotation goes no further by itself"
    if requested := next((each for each in sorted(operations) if each in _AWAKE), ""):
        return f"cannot be while {requested} is requested for the maintenance: take it off first"
    return ""


def _pool_problem(operation: str, shoot: Document, phases: Mapping[str, object]) -> str:
    name, _, listed = operation.partition("=")
    pools = {str(worker.get("name")): worker for worker in mappings(section(shoot, "spec", "provider").get("workers"))}
    named = listed.split(",")
    if name == _ROLLOUTS[0] and _WAITING not in (phases.get(_CA), phases.get(_KEY)):
        return f"is for a rotation that waits for it: neither {_path(_CA)} nor {_path(_KEY)} is {_WAITING}"
    if name not in _ROLLOUTS or "" in named:
        return f"needs the names of worker pools: {name}=pool-a,pool-b"
    if named == ["*"] and name == _ROLLOUTS[1]:
        named = list(pools)
    for number, pool in enumerate(named):
        if pool not in pools:
            return f"names {pool[:80]!r}, which is none of spec.provider.workers"
        if pool in named[:number]:
            return f"names {pool} twice"
        if name == _ROLLOUTS[1] and pools[pool].get("updateStrategy") in _IN_PLACE:
            return f"names {pool}, which is updated in place: its machines are not replaced"
    return ""


def _phases(shoot: Document) -> Mapping[str, str]:
    rotation = section(shoot, "status", "credentials", "rotation")
    return {field: str(section(rotation, field).get("phase") or "") for field in (_CA, _KEY, _ETCD)}


def _path(field: str) -> str:
    return f"status.credentials.rotation.{field}.phase"


def was_created(status: Document) -> bool:
    """True for the status of a shoot that was created, or restored, successfully once."""
    operation = section(status, "lastOperation")
    kind, state = operation.get("type"), operation.get("state")
    return kind == "Reconcile" or (kind in ("Create", "Restore") and state == "Succeeded")


def _is_asleep(shoot: Document) -> bool:
    return is_hibernation_enabled(section(shoot, "spec")) or section(shoot, "status").get("hibernated") is True
