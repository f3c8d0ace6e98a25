"""Conditions of a silent seed and of its shoots, and of objects that nobody remembers; renewal of a client certificate.

Source of the rules: `pkg/controllermanager/controller/gardenletlifecycle/reconciler.go` of Gardener.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from gardenbus.common.api.conditions import (
    FALSE,
    LAST_HEARTBEAT,
    TRUE,
    UNKNOWN,
    build_condition,
    conditions_of,
    get_condition,
    get_or_init,
    merge_conditions,
)
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.seeds import GARDENLET_READY, OBJECTS_CONDITION
from gardenbus.common.api.garden.shoot_operations import OPERATION, RECONCILE
from gardenbus.common.api.garden.shoot_status import with_status_label
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import parse_timestamp, timestamp
from gardenbus.lifecycle.domain.silence import Silence

STATUS_UNKNOWN = "StatusUnknown"
SEED_MESSAGE = "Gardenlet stopped posting status updates."
SHOOT_MESSAGE = "Gardenlet stopped sending heartbeats."
NAMED_OBJECTS = 5
NO_SILENCE = Silence()

SHOOT_CONDITIONS = (
    "APIServerAvailable",
    "ControlPlaneHealthy",
    "ObservabilityComponentsHealthy",
    "EveryNodeReady",
    "SystemComponentsHealthy",
)
SHOOT_CONSTRAINTS = ("HibernationPossible", "MaintenancePreconditionsSatisfied")
_ONLY_WITH_WORKERS = frozenset({"EveryNodeReady"})


class SeedNeverReported(NamedTuple):
    """No gardenlet has ever reported for this Seed: nothing to do."""


class ExpireSeed(NamedTuple):
    """The Seed's status must become that of `document`; `message` is that of its condition."""

    document: Document
    message: str = SEED_MESSAGE


class SeedAlreadyExpired(NamedTuple):
    """The Seed is Unknown already. `shoots_are_due`: for so long that its shoots must become Unknown too."""

    shoots_are_due: bool


SeedDecision = SeedNeverReported | ExpireSeed | SeedAlreadyExpired


def decide_silent_seed(
    document: Document, now: datetime, shoot_monitor_period: timedelta, silence: Silence = NO_SILENCE
) -> SeedDecision:
    """Decide what to do about a Seed whose gardenlet is silent.

    The condition of one that is Unknown already stays as it is: it has the `silence` as it was known when it began.
    """
    conditions = conditions_of(document)
    if not conditions:
        return SeedNeverReported()
    old = get_or_init(conditions, GARDENLET_READY, timestamp(now))
    if (old.get("status"), old.get("reason")) != (UNKNOWN, STATUS_UNKNOWN):
        message = silence.described(SEED_MESSAGE)
        new, _ = build_condition(old, now=timestamp(now), status=UNKNOWN, reason=STATUS_UNKNOWN, message=message)
        if silence.last_heartbeat is not None:
            new[LAST_HEARTBEAT] = timestamp(silence.last_heartbeat)
        return ExpireSeed(_with_status(document, conditions=merge_conditions(conditions, new)), message)
    since = parse_timestamp(old.get("lastTransitionTime"))
    return SeedAlreadyExpired(shoots_are_due=since is None or since + shoot_monitor_period <= now)


def expire_shoot(document: Document, seed: str, now: datetime) -> Document | None:
    """The Shoot of a seed that was silent for long; None when there is nothing to write.

    Only a Shoot that runs on the seed (status.seedName) is changed. Conditions and constraints that the gardenlet does
    not maintain stay as they are. The status label follows.
    """
    status = section(document, "status")
    if status.get("seedName") != seed:
        return None
    provider = section(document, "spec", "provider")
    kinds = [kind for kind in SHOOT_CONDITIONS if provider.get("workers") or kind not in _ONLY_WITH_WORKERS]
    conditions = _all_unknown(conditions_of(document), kinds, now)
    constraints = _all_unknown(conditions_of(document, "constraints"), SHOOT_CONSTRAINTS, now)
    if conditions == status.get("conditions") and constraints == status.get("constraints"):
        return None
    return with_status_label(_with_status(document, conditions=conditions, constraints=constraints))


def with_objects_condition(seed: Document, unknown: Sequence[ObjectKey], now: datetime) -> Document | None:
    """The Seed with condition ObjectsKnown, False while something `unknown` runs there; None without a change.

    It gets one when it first needs it (as of an emergency stop), and none before a gardenlet has reported for it.
    """
    conditions = conditions_of(seed)
    if not conditions or (not unknown and get_condition(conditions, OBJECTS_CONDITION) is None):
        return None
    status, reason, message = TRUE, "AllObjectsKnown", "All objects that run here are known."
    if unknown:
        named = ", ".join(f"{key.kind} {key.namespace}/{key.name}" for key in unknown[:NAMED_OBJECTS])
        more = f" and {len(unknown) - NAMED_OBJECTS} more" if len(unknown) > NAMED_OBJECTS else ""
        status, reason = FALSE, "ObjectsUnknown"
        message = f"Objects run here that the store does not have here: {named}{more}. Adopt or forget them."
    old = get_or_init(conditions, OBJECTS_CONDITION, timestamp(now))
    new, changed = build_condition(old, now=timestamp(now), status=status, reason=reason, message=message)
    return _with_status(seed, conditions=merge_conditions(conditions, new)) if changed else None


def with_reconcile_annotation(managed_seed: Document) -> Document | None:
    """The ManagedSeed annotated for reconciliation (which renews the certificate); None when it is already."""
    metadata = section(managed_seed, "metadata")
    annotations = section(metadata, "annotations")
    if annotations.get(OPERATION) == RECONCILE:
        return None
    return {**managed_seed, "metadata": {**metadata, "annotations": {**annotations, OPERATION: RECONCILE}}}


def _all_unknown(old: Sequence[Document], kinds: Sequence[str], now: datetime) -> list[Document]:
    written = timestamp(now)
    new = [
        build_condition(
            get_or_init(old, kind, written), now=written, status=UNKNOWN, reason=STATUS_UNKNOWN, message=SHOOT_MESSAGE
        )[0]
        for kind in kinds
    ]
    return merge_conditions(old, *new)


def _with_status(document: Document, **fields: Any) -> Document:
    return cast("Document", {**document, "status": {**section(document, "status"), **fields}})
