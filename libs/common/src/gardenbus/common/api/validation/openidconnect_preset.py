"""Rules of OpenID Connect presets. Source: Gardener's `pkg/apis/settings/validation` before v1.142."""

from gardenbus.common.api.document import Document
from gardenbus.common.api.shown_values import shown
from gardenbus.common.api.validation.field_cursor import FieldCursor
from gardenbus.common.api.validation.shared import check_label_selector


def check(manifest: FieldCursor, _old: Document | None) -> None:
    """Note every problem of an OpenIDConnectPreset or a ClusterOpenIDConnectPreset."""
    spec = manifest.section("spec", required=True)
    server = spec.section("server", required=True)
    server.text("clientID", required=True)
    server.text("issuerURL", required=True, rule=_issuer_problem)
    spec.integer("weight", least=1, most=100, required=True)
    for selector in ("shootSelector", "projectSelector"):
        if spec.has(selector):
            check_label_selector(spec.section(selector))


def _issuer_problem(text: str) -> str:
    return "" if text.startswith("https://") else f"must begin with https://, not {shown(text)}"
