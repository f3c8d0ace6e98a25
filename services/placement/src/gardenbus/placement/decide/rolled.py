"""The documents that rollouts and evictions write: bindings handed out or held back, and claims.

Whoever spends a placement's budgets first counts up a number in the latest resource snapshot, and then reads the
bindings: each of its writes holds only while the snapshot has the version of that count, so of all who decide at once
only the last to count writes, and it has seen what the others wrote.
"""

from gardenbus.common.resources.conditions import FALSE, TRUE, conditions_of
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.placement_parts import BOUND
from gardenbus.fleet.availability import ROLLOUT_STARTED, with_condition
from gardenbus.fleet.eviction import (
    EXECUTED,
    EXECUTED_REASON,
    INVALID_REASON,
    NOT_EXECUTED_REASON,
    VALID,
    VALID_REASON,
    Verdict,
)
from gardenbus.placement.decide.policies import annotated

STEP = "placement.gardenbus.io/step"
"""Annotation of the latest resource snapshot: how often the placement's budgets were about to be spent."""

EVICTS = "placement.gardenbus.io/evicts"
"""Annotation of an eviction: the uid of the binding that it is about to delete."""

STARTED_MESSAGE = "The latest resources are being rolled out."
WAITING_MESSAGE = "The latest resources wait for other clusters, as maxUnavailable and maxSurge say."


def stepped(snapshot: Document) -> Document:
    """A resource snapshot whose count is one higher."""
    count = str(section(snapshot, "metadata", "annotations").get(STEP) or "")
    return annotated(snapshot, {STEP: str(int(count) + 1 if count.isdecimal() else 1)})


def handed_out(binding: Document, resource_snapshot: str, now: str) -> Document:
    """A binding made Bound with these resources; `now` is RFC 3339. Its generation grows with that."""
    spec = {**section(binding, "spec"), "state": BOUND, "resourceSnapshotName": resource_snapshot}
    return _told({**binding, "spec": spec}, _generation(binding) + 1, now, started=True)


def with_strategy(binding: Document, apply_strategy: Document | None) -> Document:
    """A binding that is applied in this way."""
    spec = {name: value for name, value in section(binding, "spec").items() if name != "applyStrategy"}
    if apply_strategy is not None:
        spec["applyStrategy"] = apply_strategy
    return {**binding, "spec": spec}


def with_rollout(binding: Document, now: str, *, started: bool) -> Document:
    """A binding that says whether its rollout has begun."""
    return _told(binding, _generation(binding), now, started=started)


def with_verdict(eviction: Document, verdict: Verdict, now: str) -> Document:
    """An eviction that tells how it was judged, for good."""
    conditions, generation = conditions_of(eviction), _generation(eviction)
    if not verdict.is_valid:
        said = with_condition(
            conditions,
            VALID,
            status=FALSE,
            reason=INVALID_REASON,
            message=_sentence(verdict.message),
            generation=generation,
            now=now,
        )
        return _with_conditions(eviction, said)
    said = with_condition(
        conditions,
        VALID,
        status=TRUE,
        reason=VALID_REASON,
        message="The eviction can be judged.",
        generation=generation,
        now=now,
    )
    said = with_condition(
        said,
        EXECUTED,
        status=TRUE if verdict.is_executed else FALSE,
        reason=EXECUTED_REASON if verdict.is_executed else NOT_EXECUTED_REASON,
        message=_sentence(verdict.message),
        generation=generation,
        now=now,
    )
    return _with_conditions(eviction, said)


def _told(binding: Document, generation: int, now: str, *, started: bool) -> Document:
    said = with_condition(
        conditions_of(binding),
        ROLLOUT_STARTED,
        status=TRUE if started else FALSE,
        reason="RolloutStarted" if started else "RolloutNotStartedYet",
        message=STARTED_MESSAGE if started else WAITING_MESSAGE,
        generation=generation,
        now=now,
    )
    return _with_conditions(binding, said)


def _with_conditions(document: Document, conditions: list[Document]) -> Document:
    return {**document, "status": {**section(document, "status"), "conditions": conditions}}


def _generation(document: Document) -> int:
    return int(section(document, "metadata").get("generation") or 1)


def _sentence(message: str) -> str:
    return f"{message[:1].upper()}{message[1:]}."
