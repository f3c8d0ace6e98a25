"""Rules of ConfigMaps: of all, of those with distances between regions, and of the one with budgets."""

from collections.abc import Mapping
from typing import Any, cast

from gardenbus.apiserver.domain.validation.data_entries import check_immutable
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.budgets import BUDGETS, BUDGETS_ENTRY, budgets_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.cloudprofiles import REGION_CONFIG_LABEL, REGION_CONFIG_PROFILES, REGION_CONFIG_PURPOSE
from gardenbus.common.api.manifests.strict_yaml import read_yaml
from gardenbus.common.api.shown_values import shown
from gardenbus.common.errors import BadRequest, InvalidResource


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a ConfigMap."""
    regions = manifest.text_map("data")
    manifest.text_map("binaryData")
    check_immutable(manifest, old, ("data", "binaryData"))
    metadata = section(manifest.content, "metadata")
    if (metadata.get("namespace"), metadata.get("name")) == (BUDGETS.namespace, BUDGETS.name):
        _check_budgets(manifest, regions)
    if section(metadata, "labels").get(REGION_CONFIG_LABEL) != REGION_CONFIG_PURPOSE:
        return
    profiles = section(metadata, "annotations").get(REGION_CONFIG_PROFILES)
    if not isinstance(profiles, str) or not profiles.replace(",", "").strip():
        manifest.add_error(
            f"metadata.annotations[{REGION_CONFIG_PROFILES}]", "is needed: name the profiles, separated by commas"
        )
    for region, text in regions.items():
        _check_distances(manifest, f"data[{region[:80]}]", text)


def _check_budgets(manifest: FieldCursor, entries: Mapping[str, str]) -> None:
    for name in entries.keys() - {BUDGETS_ENTRY}:
        manifest.add_error(f"data[{name[:80]}]", f"nothing reads it: budgets are in data[{BUDGETS_ENTRY}]")
    try:
        budgets_of(dict(manifest.content))
    except InvalidResource as error:
        for problem in error.problems:
            manifest.add_error(problem.field, problem.message)


def _check_distances(manifest: FieldCursor, path: str, text: str) -> None:
    if not text.strip():
        return
    try:
        values: list[Any] = read_yaml(text)
    except BadRequest as error:
        manifest.add_error(path, f"must be a YAML map of regions to distances: {error.message}")
        return
    if len(values) != 1 or not isinstance(values[0], dict):
        manifest.add_error(path, "must be a YAML map of regions to distances, as europe-west-1: 50")
        return
    for other, distance in cast("Document", values[0]).items():
        if not isinstance(distance, int) or isinstance(distance, bool):
            manifest.add_error(path, f"the distance to {shown(other)} must be a whole number, not {shown(distance)}")
