"""Rules of ResourceEnvelopes and ClusterResourceEnvelopes. Source: KubeFleet's `apis/placement/v1beta1`."""

from typing import Any

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.envelopes import manifest_problem

MOST_MANIFESTS = 50
"""As KubeFleet's."""


def check(manifest: FieldCursor, _old: Document | None) -> None:
    """Note every problem of an envelope: manifests that are none, or are out of place in it."""
    data: Any = manifest.section("data", required=True).content
    if not data:
        manifest.add_error("data", "must hold manifests by names of your own")
    if len(data) > MOST_MANIFESTS:
        manifest.add_error("data", f"must hold at most {MOST_MANIFESTS} manifests, not {len(data)}")
    for name, content in sorted(data.items()):
        if problem := manifest_problem(manifest.content, content):
            manifest.add_error(f"data.{name}", problem)
