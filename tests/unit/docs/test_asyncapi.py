"""The document of the bus and its schemas say what the code says."""

import fnmatch
import json
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError

from gardenbus.common.adapters.nats.streams import streams
from gardenbus.common.api.keys import Header, Subjects
from gardenbus.common.api.verbs import VERBS
from gardenbus.docs.asyncapi import asyncapi, parameters_of
from gardenbus.docs.bus_reference import outdated, write
from gardenbus.docs.channels import HEADERS, PARAMETERS, channels
from gardenbus.docs.json_schemas import schemas
from tests.support.bus_document import BusDocument
from tests.support.example_files import example_manifests

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "docs" / "reference"
Document = dict[str, Any]


def test_the_committed_reference_is_what_the_code_says():
    assert outdated(REFERENCE) == [], "run: make reference"


def test_a_file_that_is_no_more_is_removed_and_others_are_left_alone(tmp_path: Path):
    write(tmp_path)
    (tmp_path / "schemas" / "Gone.json").write_text("{}")
    (tmp_path / "schemas" / "Shoot.json").write_text("{}")
    (tmp_path / "kinds.md").write_text("a page of somebody else's")
    assert outdated(tmp_path) == ["schemas/Gone.json", "schemas/Shoot.json"]
    write(tmp_path)
    assert outdated(tmp_path) == []
    assert (tmp_path / "kinds.md").exists()


@pytest.mark.parametrize("name", schemas())
def test_each_schema_is_one_of_the_draft(name: str):
    Draft202012Validator.check_schema(schemas()[name])


MANIFESTS = example_manifests()
"""The examples, but for the templates of a chart."""


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_the_examples_fit_the_schemas_of_their_kinds(path: Path):
    existing = schemas()
    for document in yaml.safe_load_all(path.read_text()):
        if document and document["kind"] in existing:
            check(document, existing[document["kind"]])


def test_a_schema_refuses_a_field_of_the_wrong_type_and_lets_unknown_ones_pass():
    shoot: Document = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "a", "namespace": "dev", "somethingNew": 1},
        "spec": {"region": None, "somethingNew": {}},
    }
    schema = schemas()["Shoot"]
    check(shoot, schema)
    with pytest.raises(ValidationError):
        check({**shoot, "spec": {"region": 5}}, schema)
    with pytest.raises(ValidationError):
        check({**shoot, "kind": "Seed"}, schema)


def check(document: Document, schema: Document) -> None:
    Draft202012Validator(schema).validate(document)  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize(
    ("tail", "name"),
    [("explain.shoot.dev.apollo", "api.explain"), ("explain.dev.apollo", "api.explainShoot")],
)
def test_each_way_to_ask_for_an_explanation_is_described(tail: str, name: str):
    assert BusDocument().channel_of(f"garden.api.{tail}") == name


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        found = cast("Document", value)
        own = [found["$ref"]] if isinstance(found.get("$ref"), str) else []
        return own + [each for part in found.values() for each in references(part)]
    if isinstance(value, list):
        return [each for part in cast("list[Any]", value) for each in references(part)]
    return []


def test_every_reference_of_the_document_leads_somewhere():
    document = asyncapi()
    for reference in references(document):
        path, _, pointer = reference.partition("#/")
        target: Any = document if not path else json.loads((REFERENCE / path).read_text())
        for part in pointer.split("/") if pointer else ():
            target = target[part]
        assert target, reference


def test_every_operation_has_a_channel_and_every_channel_two_operations():
    document = asyncapi()
    used = [operation["channel"]["$ref"].removeprefix("#/channels/") for operation in document["operations"].values()]
    assert sorted(used) == sorted([channel.name for channel in channels()] * 2)
    assert set(document["channels"]) == {*used, "answers"}


def test_every_header_of_ours_is_described():
    ours = {value for name, value in vars(Header).items() if name.isupper()}
    assert ours <= HEADERS.keys()


def test_every_parameter_is_described_and_used():
    used = {name for channel in channels() for name in parameters_of(channel.address, channel.address) or {}}
    assert used == PARAMETERS.keys()


def test_each_channel_lies_in_the_stream_that_it_names_and_in_no_other():
    configured = streams(Subjects(), 40)
    for channel in channels():
        filters = {name: each["subjects"] for name, each in configured.items()}
        holding = [name for name, each in filters.items() if any(covers(one, channel.address) for one in each)]
        assert holding == ([channel.stream] if channel.stream else []), channel.name


def covers(subject_filter: str, subject: str) -> bool:
    wanted, tokens = subject_filter.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted, tokens = wanted[:-1], tokens[: len(wanted) - 1]
    return len(wanted) == len(tokens) and all(map(fnmatch.fnmatch, tokens, wanted))


def test_each_verb_has_its_channels():
    described = {channel.address for channel in channels() if channel.name.startswith("api.")}
    for verb in VERBS:
        assert any(address.removeprefix("garden.api.").startswith(verb) for address in described), verb


def test_names_may_hold_dots_at_the_end_of_a_subject():
    address = "garden.changed.{kind}.{namespace}.{name}"
    assert parameters_of(address, "garden.changed.secret._.a.b.c") == {
        "kind": "secret",
        "namespace": "_",
        "name": "a.b.c",
    }
    assert parameters_of(address, "garden.event.secret._.a") is None
