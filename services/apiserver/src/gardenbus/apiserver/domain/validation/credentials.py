"""Rules of references to credentials: a Secret, an InternalSecret or a WorkloadIdentity, and where it is.

Source: `ValidateCredentialsRef` and `ValidateObjectReferenceNameAndNamespace` in Gardener's
`pkg/api/core/validation/utils.go`.
"""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.metadata import label_problem, subdomain_problem
from gardenbus.apiserver.domain.validation.shared import check_reference

CREDENTIALS = (
    ("v1", "Secret"),
    ("security.gardener.cloud/v1alpha1", "WorkloadIdentity"),
    ("core.gardener.cloud/v1beta1", "InternalSecret"),
)


def check_credentials(reference: FieldCursor, *, needs_namespace: bool = True) -> None:
    """Note a reference to credentials that lacks a part, or names no object that could be."""
    if not reference:
        return
    check_reference(reference, CREDENTIALS)
    reference.text("name", rule=subdomain_problem)
    reference.text("namespace", required=needs_namespace, rule=subdomain_problem)


def check_named(reference: FieldCursor) -> None:
    """Note a reference by name without one, or with one that no object could have; its namespace may be left out."""
    reference.text("name", required=True, rule=subdomain_problem)
    reference.text("namespace", rule=label_problem)
