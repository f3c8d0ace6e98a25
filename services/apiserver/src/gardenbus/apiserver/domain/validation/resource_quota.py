"""Rules of ResourceQuotas. Source: Kubernetes' `pkg/apis/core/validation`, `ValidateResourceQuotaSpec`."""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.document import Document
from gardenbus.common.api.quantities import parse_quantity
from gardenbus.common.api.resource_quotas import counted_kind
from gardenbus.common.api.shown_values import shown


def check(manifest: FieldCursor, _old: Document | None) -> None:
    """Note every problem of a ResourceQuota."""
    hard = manifest.nested("spec", "hard")
    for resource, value in hard.content.items():
        if problem := _problem(resource, value):
            hard.add_error(resource[:80], problem)


def _problem(resource: str, value: object) -> str:
    if not isinstance(value, str | int | float):
        return f"must be a quantity, as '10', not {shown(value)}"
    try:
        amount = parse_quantity(value)
    except ValueError as error:
        return str(error)
    if amount < 0:
        return f"must not be below 0, and is {shown(value)}"
    if counted_kind(resource) and amount.denominator != 1:
        return f"counts objects: must be a whole number, not {shown(value)}"
    return ""
