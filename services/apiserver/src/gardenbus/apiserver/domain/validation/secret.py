"""Rules of Secrets: base64 in `data`, text in `stringData`."""

from base64 import b64decode

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.document import Document


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a Secret; its content is not shown."""
    manifest.text("type")
    manifest.text_map("stringData")
    for key, value in manifest.text_map("data").items():
        try:
            b64decode(value, validate=True)
        except ValueError:
            manifest.add_error(f"data[{key[:80]}]", "is not base64: write plain text below stringData")
    manifest.same_as(old, "type", "make a new Secret")
