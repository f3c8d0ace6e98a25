"""Rules of the status fields that services read, whoever reported them."""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, unique
from gardenbus.apiserver.domain.validation.shared import RANGES, check_instant, check_quantities
from gardenbus.common.api.document import Document, section

_CONDITION_STATES = ("True", "False", "Progressing", "Unknown")
_CONDITION_TEXTS = ("reason", "message", "lastTransitionTime", "lastUpdateTime")
_MOST_PERCENT = 100


def check_status(manifest: FieldCursor) -> FieldCursor:
    """Check conditions, constraints, operation and generation; returns the status for the kind's own rules."""
    status = manifest.section("status")
    for field in ("conditions", "constraints"):
        check_conditions(status, field)
    status.integer("observedGeneration", least=0)
    _check_operation(status)
    return status


def check_seed_status(manifest: FieldCursor) -> None:
    """Note also wrong quantities and the certificate's end."""
    status = check_status(manifest)
    capacity = check_quantities(status, "capacity")
    for resource, amount in check_quantities(status, "allocatable").items():
        if amount > capacity.get(resource, amount):
            given = status.section("allocatable").content[resource], status.section("capacity").content[resource]
            status.section("allocatable").add_error(resource, "{} is more than the capacity of {}".format(*given))
    check_instant(status, "clientCertificateExpirationTimestamp")


def check_shoot_status(manifest: FieldCursor) -> None:
    """Note also a wrong seed, technical name, errors and ranges in use."""
    status = check_status(manifest)
    for field in ("seedName", "technicalID", "uid"):
        status.text(field)
    for entry in status.entries("lastErrors"):
        entry.text("description")
        entry.texts("codes")
    for field in RANGES:
        status.section("networking").texts(field)


def check_shoot_status_update(manifest: FieldCursor, old: Document) -> None:
    """Note identities in a Shoot's status that change, as they name what there is on the seed."""
    status, before = manifest.section("status"), section(old, "status")
    for field in ("uid", "technicalID", "clusterIdentity"):
        if status:
            status.same_as(before, field, "what is on the seed is called so")


def check_conditions(status: FieldCursor, field: str) -> None:
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


def _check_operation(status: FieldCursor) -> None:
    operation = status.section("lastOperation")
    for field in ("type", "state", "description"):  # reports come in parts, and the parts in any order
        operation.text(field)
    operation.text("lastUpdateTime")
    operation.integer("progress", least=0, most=_MOST_PERCENT)
