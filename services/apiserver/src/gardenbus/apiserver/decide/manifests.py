"""Reading what people send: bytes to manifests."""

from collections.abc import Sequence

from gardenbus.common.resources.document import Document


def parse(body: bytes) -> Sequence[Document]:
    """Manifests of one message, in order; a `List` is flattened. Raises BadRequest."""
    return (Document(text=body),)
