"""What a Shoot's DNS providers may name."""

import pytest

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, FieldErrors
from gardenbus.apiserver.domain.validation.shoot_dns import check_providers
from gardenbus.common.api.document import Document


@pytest.mark.parametrize(
    ("api_version", "kind", "fault"),
    [
        ("v1", "Secret", None),
        ("security.gardener.cloud/v1alpha1", "WorkloadIdentity", None),
        ("core.gardener.cloud/v1beta1", "InternalSecret", "kind"),
        ("v1", "ConfigMap", "kind"),
        ("v2", "secret", "kind"),
        ("v1", "", "kind"),
    ],
)
def test_credentials_are_in_secrets_or_workload_identities(api_version: str, kind: str, fault: str | None) -> None:
    provider = {"type": "aws-route53", "credentialsRef": {"apiVersion": api_version, "kind": kind, "name": "key"}}
    errors = FieldErrors()
    content: Document = {"domain": "example.org", "providers": [provider]}
    check_providers(FieldCursor(content, "spec.dns", errors), (1, 34, 1))
    assert [error.field for error in errors.problems] == (
        [f"spec.dns.providers[0].credentialsRef.{fault}"] if fault else []
    )
