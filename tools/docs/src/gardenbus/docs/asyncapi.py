"""The AsyncAPI 3 document of a landscape's bus, made of the table of channels. Schemas stand beside it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gardenbus.docs.channels import HEADERS, PARAMETERS, RESPONSES, Channel, MessageSpec, channels, values_of
from gardenbus.docs.json_schemas import KIND_VIEWS, OTHER

VERSION = "1.0.0"

_PARAMETER = re.compile(r"\{(\w+)\}")

JsonObject = dict[str, Any]


def asyncapi() -> JsonObject:
    """The document, ready to be written as YAML; its schemas are referred to as `./schemas/<name>.json`."""
    table = channels()
    messages = {message.name: _message(message, channel) for channel in table for message in channel.messages}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Gardenbus",
            "version": VERSION,
            "description": (
                "Shoots, Seeds and what happens to them, on NATS JetStream. With another prefix than `garden` all "
                "subjects begin with that. Streams and the nats CLI work as they are; unknown members and headers "
                "are to be ignored."
            ),
        },
        "defaultContentType": "application/json",
        "channels": {channel.name: _channel(channel) for channel in table} | {"answers": _reply_channel()},
        "operations": {name: operation for channel in table for name, operation in _operations(channel)},
        "components": {
            "messages": messages | {"Answer": _response_message()},
            "schemas": {"AnyObject": any_object()},
        },
    }


def any_object() -> JsonObject:
    """The schema of an object of whatever kind."""
    return {"oneOf": [{"$ref": f"./schemas/{name}.json"} for name in (*sorted(KIND_VIEWS), OTHER)]}


def header_schema(message: MessageSpec) -> JsonObject:
    """The schema of a message's headers. Others may be there."""
    named = {name: _header(name) for name in (*message.required, *message.optional)}
    required = {"required": list(message.required)} if message.required else {}
    return {"type": "object", "properties": named, **required}


def _header(name: str) -> JsonObject:
    description, pattern = HEADERS[name]
    return {"type": "string", "description": description, **({"pattern": pattern} if pattern else {})}


def _channel(channel: Channel) -> JsonObject:
    parameters = {name: _parameter(name) for name in _PARAMETER.findall(channel.address)}
    kept = f" Kept in the stream {channel.stream}." if channel.stream else ""
    return {
        "address": channel.address,
        "description": f"{channel.summary}{kept}",
        "messages": {message.name: {"$ref": f"#/components/messages/{message.name}"} for message in channel.messages},
        **({"parameters": parameters} if parameters else {}),
        **({"x-nats-stream": channel.stream} if channel.stream else {}),
    }


def _parameter(name: str) -> JsonObject:
    values = values_of(name)
    return {"description": PARAMETERS[name], **({"enum": list(values)} if values else {})}


def _operations(channel: Channel) -> Sequence[tuple[str, JsonObject]]:
    """Operations of sender and receiver. A response goes to the reply subject of its request."""
    reference = {"$ref": f"#/channels/{channel.name}"}
    reply = {"reply": {"channel": {"$ref": "#/channels/answers"}}} if channel.is_request_reply else {}
    return (
        (f"{channel.name}.send", {"action": "send", "channel": reference, "summary": f"By {channel.sender}.", **reply}),
        (
            f"{channel.name}.receive",
            {
                "action": "receive",
                "channel": reference,
                "summary": f"By {channel.receiver}.",
                **reply,
                **({"bindings": {"nats": {"queue": channel.receiver}}} if channel.is_request_reply else {}),
            },
        ),
    )


def _message(message: MessageSpec, channel: Channel) -> JsonObject:
    return {
        "name": message.name,
        "summary": message.summary,
        "contentType": content_type(message),
        "headers": header_schema(message),
        "payload": payload_schema(message),
        "x-nats-stream": channel.stream,
    }


def content_type(message: MessageSpec) -> str:
    """Of what kind the body is."""
    if message.payload == "manifests":
        return "application/yaml"  # JSON is YAML too
    return "application/octet-stream" if message.payload in (None, "bytes") else "application/json"


def payload_schema(message: MessageSpec) -> JsonObject:
    """The schema of a message's body."""
    match message.payload:
        case None:
            return {"type": "string", "maxLength": 0}
        case "bytes":
            return {}
        case "manifests":
            return {"type": ["object", "array", "string"], "description": "JSON or YAML; several documents, a List."}
        case "objects":
            return {"$ref": "#/components/schemas/AnyObject"}
        case struct:
            return {"$ref": f"./schemas/{struct.__name__}.json"}


def _reply_channel() -> JsonObject:
    return {
        "address": None,
        "description": "The reply subject of the question.",
        "messages": {"Answer": {"$ref": "#/components/messages/Answer"}},
    }


def _response_message() -> JsonObject:
    return {
        "name": "Answer",
        "summary": "What came of a request.",
        "contentType": "application/json",
        "payload": {"$ref": f"./schemas/{RESPONSES[0].__name__}.json"},
    }


def parameters_of(address: str, subject: str) -> Mapping[str, str] | None:
    """Parameters of a subject of an address; None for other subjects. The last parameter may span tokens."""
    names = _PARAMETER.findall(address)
    pattern = re.escape(address)
    for position, name in enumerate(names):
        tokens = r".+" if position == len(names) - 1 else r"[^.]+"
        pattern = pattern.replace(re.escape("{" + name + "}"), f"(?P<{name}>{tokens})")
    found = re.fullmatch(pattern, subject)
    return found.groupdict() if found else None
