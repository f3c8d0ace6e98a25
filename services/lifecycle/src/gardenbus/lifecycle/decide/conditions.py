"""What is written about a seed that fell silent, about its shoots, and about its certificate.

Source of the rules: `pkg/controllermanager/controller/gardenletlifecycle/reconciler.go` of Gardener.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.conditions import (
    UNKNOWN,
    build_condition,
    conditions_of,
    get_condition,
    get_or_init,
    merge_conditions,
)
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.seeds import GARDENLET_READY
from gardenbus.common.resources.shoot_status import with_status_label

STATUS_UNKNOWN = "StatusUnknown"
SEED_MESSAGE = "Gardenlet stopped posting status updates."
SHOOT_MESSAGE = "Gardenlet stopped sending heartbeats."
OPERATION_ANNOTATION = "gardener.cloud/operation"
RECONCILE = "reconcile"

SHOOT_CONDITIONS = (
    "APIServerAvailable",
    "ControlPlaneHealthy",
    "ObservabilityComponentsHealthy",
    "EveryNodeReady",
    "SystemComponentsHealthy",
)
SHOOT_CONSTRAINTS = ("HibernationPossible", "MaintenancePreconditionsSatisfied")
_ONLY_WITH_WORKERS = frozenset({"EveryNodeReady"})


class LeaveAlone(NamedTuple):
    """No gardenlet has ever reported for this Seed: its silence is no news."""


class WriteSeed(NamedTuple):
    """The Seed's status must become that of `document`."""

    document: Document


class SeedStands(NamedTuple):
    """The Seed says already that nobody is there. `shoots_are_due`: for so long that its shoots must say so too."""

    shoots_are_due: bool


SeedDecision = LeaveAlone | WriteSeed | SeedStands


def decide_silent_seed(document: Document, now: datetime, shoot_monitor_period: timedelta) -> SeedDecision:
    """Decide what to do about a Seed whose gardenlet is silent."""
    conditions = conditions_of(document)
    if not conditions:
        return LeaveAlone()
    old = get_or_init(conditions, GARDENLET_READY, timestamp(now))
    new, changed = build_condition(old, now=timestamp(now), status=UNKNOWN, reason=STATUS_UNKNOWN, message=SEED_MESSAGE)
    if changed or get_condition(conditions, GARDENLET_READY) is None:
        return WriteSeed(_with_status(document, conditions=merge_conditions(conditions, new)))
    since = parse_instant(new.get("lastTransitionTime"))
    return SeedStands(shoots_are_due=since is None or since + shoot_monitor_period <= now)


def silent_shoot(document: Document, seed: str, now: datetime) -> Document | None:
    """What a Shoot becomes when its seed has been silent for long; None when there is nothing to write.

    Only a Shoot that the seed runs by its own word (status.seedName) is touched. Conditions and constraints that the
    gardenlet does not maintain stay as they are. The label that sums the status up goes with it.
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


def expired_certificate(document: Document, now: datetime) -> str | None:
    """The moment at which the gardenlet's client certificate ran out (as written), None while it is good."""
    written = section(document, "status").get("clientCertificateExpirationTimestamp")
    expiry = parse_instant(written)
    return str(written) if expiry is not None and expiry < now else None


def marked_for_reconciliation(managed_seed: Document) -> Document | None:
    """The ManagedSeed with the wish to be reconciled (which makes a new certificate); None when it has it."""
    metadata = section(managed_seed, "metadata")
    annotations = section(metadata, "annotations")
    if annotations.get(OPERATION_ANNOTATION) == RECONCILE:
        return None
    return {
        **managed_seed,
        "metadata": {**metadata, "annotations": {**annotations, OPERATION_ANNOTATION: RECONCILE}},
    }


def parse_instant(written: Any) -> datetime | None:
    """Read an RFC 3339 time (UTC when it names no zone); None when it is none."""
    if not isinstance(written, str):
        return None
    try:
        instant = datetime.fromisoformat(written)
    except ValueError:
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


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
