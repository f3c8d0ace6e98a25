"""Rules of Plants: the Secret with the kubeconfig, and the endpoints that people are shown.

Source: Gardener's `pkg/apis/core/validation/validation.go` until v1.53.
"""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.document import Document, section


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a Plant."""
    spec = manifest.section("spec", required=True)
    secret = spec.section("secretRef", required=True)
    secret.text("name", required=True)
    secret.same_as(section(old or {}, "spec", "secretRef"), "name", "make a new plant")
    spec.named_entries("endpoints")
    for endpoint in spec.entries("endpoints"):
        endpoint.text("url", required=True)
        endpoint.text("purpose", required=True)
