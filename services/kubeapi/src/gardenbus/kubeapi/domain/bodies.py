"""Bodies of requests: JSON, YAML or protobuf, as the Content-Type says."""

from typing import Any, cast

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.api.manifests.strict_yaml import read_yaml
from gardenbus.common.errors import BadRequest
from gardenbus.kubeapi.domain import protobuf

_decode = json_decoder()
_YAML = frozenset({"application/yaml", "text/yaml", "application/x-yaml", "application/apply-patch+yaml"})
_JSON = frozenset({"", "application/json"})


class UnsupportedMediaType(BadRequest):
    """The body is in a format that is not read here."""

    code = 415
    reason = "UnsupportedMediaType"


def read_body(body: bytes, content_type: str) -> Document:
    """The object in a body. Raises UnsupportedMediaType, BadRequest."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == protobuf.MEDIA_TYPE:
        return protobuf.decode_protobuf(body)
    if media_type in _YAML:
        values = read_yaml(body.decode(errors="replace"))
        value: Any = values[0] if len(values) == 1 else None
    elif media_type in _JSON:
        value = read_json(body)
        value = {} if value is None else value
    else:
        raise UnsupportedMediaType(f"the body of the request was in an unknown format: {media_type[:80]}")
    if not isinstance(value, dict):
        raise BadRequest("the body is no object")
    return cast("Document", value)


def read_json(body: bytes) -> Any:
    """The value of a JSON text. Raises BadRequest."""
    try:
        return _decode(body)
    except msgspec.MsgspecError as error:
        raise BadRequest(f"the body cannot be read: {error}") from error
