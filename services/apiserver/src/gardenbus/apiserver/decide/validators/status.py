"""Rules of the status fields that something here reads, whoever reported them."""

from gardenbus.apiserver.decide.fields import Place, unique
from gardenbus.apiserver.decide.validators.scheduling import check_instant, check_quantities

_CONDITION_STATES = ("True", "False", "Progressing", "Unknown")
_CONDITION_TEXTS = ("reason", "message", "lastTransitionTime", "lastUpdateTime")
_MOST_PERCENT = 100


def check_status(manifest: Place) -> Place | None:
    """Note wrong conditions, constraints, operations and generations; answer the status for the kind's own rules."""
    status = manifest.section("status")
    if status is None:
        return None
    for field in ("conditions", "constraints"):
        check_conditions(status, field)
    status.integer("observedGeneration", least=0)
    _check_operation(status)
    return status


def check_seed_status(manifest: Place) -> None:
    """Note also wrong quantities and the certificate's end."""
    status = check_status(manifest)
    if status is not None:
        check_quantities(status, "capacity")
        check_quantities(status, "allocatable")
        check_instant(status, "clientCertificateExpirationTimestamp")


def check_shoot_status(manifest: Place) -> None:
    """Note also a wrong seed, technical name, errors and ranges in use."""
    status = check_status(manifest)
    if status is None:
        return
    for field in ("seedName", "technicalID", "uid"):
        status.text(field)
    for entry in status.entries("lastErrors"):
        entry.text("description")
        entry.texts("codes")
    if networking := status.section("networking"):
        for field in ("nodes", "pods", "services"):
            networking.texts(field)


def check_conditions(status: Place, field: str) -> None:
    """Note conditions without type, of an unknown status, and repeated ones."""
    conditions = status.entries(field)
    for condition in conditions:
        condition.text("type", required=True)
        condition.choice("status", _CONDITION_STATES, required=True)
        for text in _CONDITION_TEXTS:
            condition.text(text)
        condition.texts("codes")
        condition.integer("observedGeneration", least=0)
    unique(conditions, "type")


def _check_operation(status: Place) -> None:
    operation = status.section("lastOperation")
    if operation is None:
        return
    for field in ("type", "state", "description"):  # reports come in parts, and the parts in any order
        operation.text(field)
    operation.text("lastUpdateTime")
    operation.integer("progress", least=0, most=_MOST_PERCENT)
