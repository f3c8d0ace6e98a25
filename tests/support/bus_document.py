"""Holds messages against docs/reference: which channel they are on, and whether headers and body are as it says."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator

from gardenbus.docs.asyncapi import parameters_of

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"

Schema = dict[str, Any]


class Seen(NamedTuple):
    """A message as somebody on the bus sees it."""

    subject: str
    headers: Mapping[str, str]
    body: bytes


class BusDocument:
    """The committed document, read as a stranger would read it."""

    def __init__(self, directory: Path = REFERENCE) -> None:
        self.document: Schema = yaml.safe_load((directory / "asyncapi.yaml").read_text())
        self._schemas: dict[str, Schema] = {
            f"./schemas/{path.name}": json.loads(path.read_text()) for path in (directory / "schemas").glob("*.json")
        }
        self._validators: dict[str, Sequence[Validator]] = {}

    def channel_of(self, subject: str) -> str:
        """The name of the channel that a subject is of; the most particular one. "" when there is none."""
        found = [
            (len(re.sub(r"\{\w+\}", "", channel["address"])), name)
            for name, channel in self.document["channels"].items()
            if channel["address"] and parameters_of(channel["address"], subject) is not None
        ]
        return max(found)[1] if found else ""

    def faults(self, seen: Seen) -> list[str]:
        """What is wrong with a message; nothing when one of its channel's messages allows it."""
        channel = self.channel_of(seen.subject)
        if not channel:
            return [f"{seen.subject} is on no channel"]
        faults: list[str] = []
        for name in self.document["channels"][channel]["messages"]:
            message: Schema = self.document["components"]["messages"][name]
            found = [
                f"{seen.subject} as {name}: {fault}"
                for fault in (
                    *self._errors(f"{name} headers", message["headers"], dict(seen.headers)),
                    *self._body_faults(name, message, seen.body),
                )
            ]
            if not found:
                return []
            faults += found
        return faults

    def response_faults(self, body: bytes) -> list[str]:
        """What is wrong with an answer."""
        return self._body_faults("Answer", self.document["components"]["messages"]["Answer"], body)

    def object_faults(self, document: Any) -> list[str]:
        """What is wrong with an object, judged by the schema of its kind."""
        return self._errors("AnyObject", {"$ref": "#/components/schemas/AnyObject"}, document)

    def _body_faults(self, name: str, message: Schema, body: bytes) -> list[str]:
        try:
            value: Any = json.loads(body) if body and message["contentType"] == "application/json" else body.decode()
        except ValueError as error:
            return [str(error)]
        return self._errors(name, message["payload"], value)

    def _errors(self, name: str, schema: Schema, value: Any) -> list[str]:
        if name not in self._validators:
            self._validators[name] = [Draft202012Validator(each) for each in self._alternatives(schema)]
        found: list[str] = []
        for validator in self._validators[name]:
            errors = [
                f"{error.json_path}: {error.message[:200]}"
                for error in validator.iter_errors(value)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            ]
            if not errors:
                return []
            found += errors
        return found

    def _alternatives(self, schema: Schema) -> list[Schema]:
        """A schema with what it refers to put in its place; several where it is one of many."""
        reference: str = schema.get("$ref", "")
        if reference == "#/components/schemas/AnyObject":
            listed: list[Schema] = self.document["components"]["schemas"]["AnyObject"]["oneOf"]
            return [self._schemas[each["$ref"]] for each in listed]
        return [self._schemas[reference]] if reference else [schema]
