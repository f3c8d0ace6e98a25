"""Rules of ControllerDeployments: where the chart of a controller is, and what its values name.

Source: Gardener's `pkg/api/core/validation/controllerdeployment.go` and `utils.go`.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.metadata import check_label_name
from gardenbus.apiserver.domain.validation.shared import CONFIGURATIONS, check_resources
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, only_text
from gardenbus.common.api.shown_values import shown

CUSTOM = "migration.controllerdeployment.gardener.cloud/"
"""Prefix of annotations that have type and configuration of a deployment without a chart, from `v1beta1`."""

_DIGEST = "sha256:"
_NAME = re.compile(r"[a-zA-Z0-9]+")
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")
_NAMING = re.compile(r"\{\{\s*\.resources\.(?P<name>[a-zA-Z0-9]+)\.data\.[a-zA-Z0-9]+\s*\}\}")


def check(manifest: FieldCursor, old: Document | None) -> None:  # noqa: ARG001
    """Note every problem of a ControllerDeployment; one without a chart is for whoever installs its controller."""
    check_label_name(manifest)
    helm = manifest.section("helm")
    if helm:
        if bool(helm.content.get("rawChart")) == helm.has("ociRepository"):
            helm.add_error("", "must have either rawChart or ociRepository: where the chart is")
        check_oci_repository(helm.section("ociRepository"))
        _check_templates(helm, {only_text(each.get("name")) for each in mappings(manifest.content.get("resources"))})
    check_resources(manifest, CONFIGURATIONS)
    for resource in manifest.entries("resources"):
        if not _NAME.fullmatch(only_text(resource.content.get("name"))):
            resource.add_error("name", "must be letters and digits alone: templates name it")
    annotations = section(manifest.content, "metadata", "annotations")
    for part in ("type", "providerConfig") if helm else ():
        if annotations.get(f"{CUSTOM}{part}"):
            manifest.add_error(f"metadata.annotations[{CUSTOM}{part}]", "is for deployments without helm")


def check_oci_repository(repository: FieldCursor) -> None:
    """Note an artifact that is not named by a reference, or by repository and tag or digest."""
    if not repository:
        return
    stated = {field: repository.text(field) for field in ("ref", "repository", "tag", "digest")}
    if not stated["ref"] and not stated["repository"]:
        repository.add_error("", "must have either ref or repository")
    elif repository.has("ref"):
        for field in ("repository", "tag", "digest"):
            if stated[field]:
                repository.add_error(field, "cannot stand beside ref: state one of them")
    else:
        if not stated["tag"] and not stated["digest"]:
            repository.add_error("", "must have either tag or digest")
        if repository.has("digest") and not (stated["digest"] or "").startswith(_DIGEST):
            repository.add_error("digest", f"must begin with {_DIGEST}")


def _check_templates(helm: FieldCursor, names: set[str]) -> None:
    """Note templates in values that are none of `{{ .resources.<name>.data.<key> }}`, or name no resource."""
    for text in _texts_in(helm.content.get("values")):
        for template in _TEMPLATE.findall(text):
            naming = _NAMING.fullmatch(template)
            if naming is None:
                helm.add_error("values", f"{shown(template)} must be as {{{{ .resources.<name>.data.<key> }}}}")
            elif naming["name"] not in names:
                helm.add_error("values", f"{shown(template)} names no entry of resources: add {naming['name']} there")
        rest = _TEMPLATE.sub("", text)
        for brackets in ("{{", "}}"):
            if brackets in rest:
                helm.add_error("values", f"{brackets} belongs to no template")


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for below in cast("Document", value).values():
            yield from _texts_in(below)
    elif isinstance(value, list):
        for below in cast("list[Any]", value):
            yield from _texts_in(below)
