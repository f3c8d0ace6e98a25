"""Rules of what ConfigMaps and Secrets hold: names of entries, and objects that may not change.

Source: `pkg/apis/core/validation` (ValidateConfigMap, ValidateSecret and their updates) in kubernetes/kubernetes.
"""

import re
from collections.abc import Sequence

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.document import Document, section

_NAME = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def check_entries(manifest: FieldCursor, *fields: str) -> None:
    """Note entries whose names cannot be those of files.

    ConfigMaps have others here: those with roles and revocations name users.
    """
    for field in fields:
        for name in manifest.section(field).content:
            if not _NAME.fullmatch(name) or name in (".", "..") or name.startswith(".."):
                rule = "use at most 253 of A-Z a-z 0-9 - _ ."
                manifest.add_error(f"{field}[{name[:80]}]", f"is no name of an entry: {rule}")


def check_immutable(manifest: FieldCursor, old: Document | None, fields: Sequence[str]) -> None:
    """Note a change of an object that was made immutable."""
    manifest.boolean("immutable")
    if old is None or old.get("immutable") is not True:
        return
    if manifest.content.get("immutable") is not True:
        manifest.add_error("immutable", "stays true: make a new object")
    for field in fields:
        if section(manifest.content, field) != section(old, field):
            manifest.add_error(field, "cannot be changed while immutable is true: make a new object")
