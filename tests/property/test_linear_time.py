"""Whatever reads text of others does so in the time of its length: twice of it costs at most 2.5 times as much.

Each row of the tables is a name, a maker of a text (or a manifest) of a length, and what reads it. A new parser, merge
or expression is one row. A row whose reader rejects long texts by their length is done where the longest message ends.
"""

import gc
import json
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

import msgspec
import pytest

from gardenbus.apiserver.domain import merging
from gardenbus.apiserver.domain.field_validation import validation_of
from gardenbus.apiserver.domain.nearest_values import nearest_names, nearest_versions
from gardenbus.apiserver.domain.request_subjects import key_of_tail, parse_request_subject
from gardenbus.apiserver.domain.senders import check_sender
from gardenbus.apiserver.domain.validation import bastion
from gardenbus.apiserver.domain.validation.issuers import certificates_problem, issuer_problem
from gardenbus.apiserver.registry.preconditions import precondition_of
from gardenbus.cli.output.jsonpath import parse_path, parse_template
from gardenbus.cli.output.printers import parse_columns
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document, canonical, encode
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.garden.cron_schedules import location_of, parse_cron
from gardenbus.common.api.garden.expirable_versions import numbers_of
from gardenbus.common.api.garden.feasibility import Tolerations
from gardenbus.common.api.garden.tolerations import effective_tolerations
from gardenbus.common.api.garden.unschedulable import brief_reason, cause_of
from gardenbus.common.api.garden.version_constraints import satisfies
from gardenbus.common.api.identity.signing_requests import decoded
from gardenbus.common.api.keys import Subjects
from gardenbus.common.api.list_selectors import field_paths, parse_label_selector
from gardenbus.common.api.manifests.parser import parse
from gardenbus.common.api.manifests.strict_json import read_json
from gardenbus.common.api.manifests.strict_yaml import read_yaml
from gardenbus.common.api.merge_patches import merge_patch_between
from gardenbus.common.api.names import LABEL, NAME
from gardenbus.common.api.networks import is_canonical, parse_cidr
from gardenbus.common.api.quantities import parse_quantity
from gardenbus.common.api.redaction import redacted
from gardenbus.common.api.request_bodies import ListRequest
from gardenbus.common.api.users import check_user
from gardenbus.common.controller.dead_letter import header_text
from gardenbus.common.errors import GardenbusError
from gardenbus.common.runtime.printable import printable
from tests.fuzz.generator import Input
from tests.fuzz.process import stored_world
from tests.fuzz.targets import Targets
from tests.fuzz.world import stored_object
from tests.support.builders import a_shoot
from tests.support.valid_manifests import BASTION, CLOUD_PROFILE, EXPOSURE_CLASS, PROJECT, QUOTA, SEED, SHOOT, WORKER

LONGEST = 1024 * 1024
LEAST_SECONDS = 0.02
MOST = 2.5
ROUNDS = 3
TRIES = 5
"""Comparisons of which one must be within the bound: another process may spoil the caches of one."""

SUBJECTS = Subjects()
VERSION = (1, 33, 1)
PEM = "-----BEGIN CERTIFICATE-----"

Read = Callable[[Any], object]
Text = Callable[[int], str]


class Row(NamedTuple):
    """A text that grows, and its reader."""

    name: str
    text: Callable[[int], Any]
    read: Read


def repeated(unit: str, before: str = "", after: str = "") -> Callable[[int], str]:
    return lambda length: before + unit * (length // len(unit)) + after


BLANKS = repeated(" ", "a=", "(")
DIGITS = repeated("9")
LABELS = repeated("a-", "", "!")
DOTTED = repeated("a.", "", "!")


def in_bytes(text: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda length: text(length).encode()


def selected(text: str) -> object:
    """The query of a list, as the apiserver reads it."""
    return decode_json(encode({"labelSelector": text, "fieldSelector": text}), ListRequest).matches


def public_key(text: str) -> object:
    return bastion._PUBLIC_KEY.fullmatch(text)  # pyright: ignore[reportPrivateUsage]


def in_headers(text: str) -> None:
    headers = {
        "Gardenbus-Condition": text,
        "Gardenbus-Validate": text,
        "Nats-Request-Info": text,
        "traceparent": text,
    }
    with tolerated():
        precondition_of(headers)
    with tolerated():
        validation_of(headers, FieldValidation.STRICT)
    with tolerated():
        check_sender(headers, "ann")


@contextmanager
def tolerated() -> Generator[None]:
    """A text may be rejected."""
    with suppress(GardenbusError, ValueError, msgspec.MsgspecError):
        yield


SELECTOR_READERS: Mapping[str, Read] = {
    "label selector": parse_label_selector,
    "field selector": field_paths,
    "list query": selected,
}
SELECTORS: Mapping[str, Text] = {
    "blanks": BLANKS,
    "blanks and a line": repeated(" ", "a=", "x\ny"),
    "requirements": repeated("a=b,"),
    "requirements and a blank": repeated("a=b,", "", " "),
    "values": repeated("a,", "a in (", ")"),
    "keys without an end": repeated("a", "", "("),
    "negations": repeated("!", "", "a"),
}
READERS: Mapping[str, Read] = {
    "duration": parse_duration,
    "quantity": parse_quantity,
    "version": numbers_of,
    "version constraint": lambda text: satisfies(VERSION, text),
    "cron schedule": parse_cron.__wrapped__,
    "time zone": location_of.__wrapped__,
    "network": parse_cidr,
    "canonical network": is_canonical,
    "label": LABEL.fullmatch,
    "name": NAME.fullmatch,
    "user": check_user,
    "certificates": certificates_problem,
    "issuer": issuer_problem,
    "public key": public_key,
    "base64": decoded,
    "header's text": header_text,
    "headers": in_headers,
    "line of a log": lambda text: printable({"event": text, text: [text]}),
    "nearest names": lambda text: nearest_names(text, ["apollo", text]),
    "nearest versions": lambda text: nearest_versions(text, ["1.2.3", text]),
    "reason": brief_reason,
    "cause": cause_of,
    "subject": lambda text: parse_request_subject(f"garden.as.{text}.api.get", SUBJECTS),
    "key": key_of_tail,
    "JSON": read_json,
    "YAML": read_yaml,
    "path": parse_path,
    "template": parse_template,
    "custom columns": parse_columns,
}
SHAPES: Mapping[str, Text] = {
    "digits": DIGITS,
    "a fraction": repeated("0", "0.", "1"),
    "blanks": repeated(" ", "a", "("),
    "lines": repeated("\n ", PEM),
    "beginnings": repeated(PEM + "\n"),
    "hyphens": LABELS,
    "dots": DOTTED,
    "hours": repeated("1h", "", "x"),
    "comparisons": repeated(">= 1,"),
    "commas": repeated("a,"),
    "ranges": repeated("1-2,", "", " * * * *"),
    "braces": repeated("{"),
    "brackets": repeated("[.a"),
    "colons": repeated("a:b."),
    "quotes": repeated("'\\"),
    "parts": repeated("(, "),
    "reasons": repeated("seed-a => b, ", "0/9 seeds are eligible: {", "}"),
    "counted reasons": repeated(", 9 seeds (a", "0/9 seeds are eligible: {", "}"),
    "slashes": repeated("/"),
    "the path of a URL": repeated("/a", "https://a", "#\n"),
    "capitals": repeated("Aé"),
}
MESSAGES: Mapping[str, Text] = {
    "an integer": repeated("9", '{"a":', "}"),
    "a fraction": repeated("0", '{"a":0.', "1}"),
    "digits after the point": repeated("7", '{"a":1.', "}"),
    "a text": repeated("a", '{"a":"', '"}'),
    "escapes": repeated("\\u00e9", '{"a":"', '"}'),
    "half a pair": repeated("\\ud800", '{"a":"', '"}'),
    "nested lists": lambda length: '{"a":' + "[" * (length // 2) + "]" * (length // 2) + "}",
    "nested objects": repeated('{"a":', "", ""),
    "repeated keys": repeated('"a":1,', "{", '"b":1}'),
    "documents": repeated('{"kind":"A"}'),
    "documents, one broken": repeated('{"kind":"A"}', "", "{"),
    "entries": repeated("{},", '{"kind":"List","items":[', "{}]}"),
    "YAML entries": repeated("- a\n", "a:\n"),
    "YAML keys": lambda length: "".join(f"k{number}: 1\n" for number in range(length // 8)),
    "YAML documents": repeated("--- {a: b}\n"),
    "YAML nesting": repeated("[", "a: "),
    "YAML dashes": repeated("- ", "a: \n"),
    "YAML anchors": lambda length: "".join(f"k{number}: &a{number} x\n" for number in range(length // 12)),
    "YAML aliases": repeated("- *a\n", "a: &a [1, 2]\nb:\n"),
    "YAML merges": repeated("- <<: *a\n", "a: &a {b: c}\nb:\n"),
    "YAML merged sources": lambda length: "a: &a {b: c}\nb:\n  <<: [" + "*a, " * (length // 4) + "]\n",
    "a YAML integer": repeated("9", "a: "),
    "a YAML octal": repeated("7", "a: 0o"),
    "a YAML binary": repeated("1", "a: 0b"),
    "a YAML float": repeated("9", "a: 1."),
    "a YAML exponent": repeated("9", "a: 1e"),
    "a YAML comment": repeated("#", "a: b #"),
    "YAML comments": repeated("# a\n", "", "a: b\n"),
    "a YAML block": repeated("  a\n", "a: |\n"),
    "a folded YAML block": repeated("  a\n\n", "a: >\n"),
    "a plain YAML text": repeated("  a\n", "a: b\n"),
    "a quoted YAML text": repeated("\\x41", 'a: "', '"'),
    "YAML blanks": repeated(" ", "a:", "b"),
    "YAML tabs": repeated("\t", "a:", "b"),
    "YAML question marks": repeated("? "),
    "a YAML tag": repeated("!", "a: ", " b"),
}
TEXTS = [
    *(
        Row(f"{reader} of {what}", text, read)
        for readers, shapes in ((SELECTOR_READERS, SELECTORS), (READERS, SHAPES))
        for reader, read in readers.items()
        for what, text in shapes.items()
    ),
    *(Row(f"message of {what}", in_bytes(text), parse) for what, text in MESSAGES.items()),
]


@cache
def targets() -> Targets:
    """Admission in a world of valid manifests."""
    return Targets(stored_world()[0])


@pytest.fixture(scope="module", autouse=True)
def _world() -> None:
    """Build the world before anything is measured."""
    targets()


def created(body: bytes) -> None:
    """Admission of new objects: parser, merge, defaults, validation, plug-ins, and what services read of the result."""
    targets().create(Input("create", "", {}, body, 0))


def updated(documents: tuple[Document, Document]) -> None:
    """Admission of a manifest over a stored object."""
    before, sent = documents
    stored = stored_object(before)
    merged = merging.apply_three_way(stored.document(), json.loads(stored.last_applied), sent)
    targets().admitted(merged, stored.document())


def with_value(document: Document, path: str, value: Any) -> Document:
    """A manifest with another value at `spec.provider.zones`."""
    first, _, rest = path.partition(".")
    return {**document, first: with_value(document.get(first) or {}, rest, value) if rest else value}


def named(number: int, offset: int = 0) -> list[str]:
    return [f"n{each + offset}" for each in range(number)]


Entries = Callable[[int, int], Any]
LISTS: list[tuple[str, Document, str, Entries]] = [
    ("finalizers", SHOOT, "metadata.finalizers", lambda n, at: [f"example.org/{each}" for each in named(n, at)]),
    ("finalizers that are no texts", SHOOT, "metadata.finalizers", lambda n, at: [[each] for each in named(n, at)]),
    (
        "owners",
        SHOOT,
        "metadata.ownerReferences",
        lambda n, at: [{"apiVersion": "v1", "kind": "A", "name": each, "uid": each} for each in named(n, at)],
    ),
    ("labels", SHOOT, "metadata.labels", lambda n, at: dict.fromkeys(named(n, at), "a")),
    ("annotations", SHOOT, "metadata.annotations", lambda n, at: dict.fromkeys(named(n, at), "a")),
    ("unknown fields", SHOOT, "spec", lambda n, at: {**SHOOT["spec"], **dict.fromkeys(named(n, at), "a")}),
    ("tolerations", SHOOT, "spec.tolerations", lambda n, at: [{"key": each} for each in named(n, at)]),
    (
        "workers",
        SHOOT,
        "spec.provider.workers",
        lambda n, at: [{**WORKER, "name": each} for each in named(n // 16, at)],
    ),
    ("access restrictions", SHOOT, "spec.accessRestrictions", lambda n, at: [{"name": each} for each in named(n, at)]),
    (
        "expressions of a selector",
        SHOOT,
        "spec.seedSelector.matchExpressions",
        lambda n, at: [{"key": each, "operator": "Exists"} for each in named(n, at)],
    ),
    (
        "values of a selector",
        SHOOT,
        "spec.seedSelector.matchExpressions",
        lambda n, at: [{"key": "a", "operator": "In", "values": named(n, at)}],
    ),
    ("zones", SEED, "spec.provider.zones", named),
    ("taints", SEED, "spec.taints", lambda n, at: [{"key": each} for each in named(n, at)]),
    (
        "default domains",
        SEED,
        "spec.dns.defaults",
        lambda n, at: [{"domain": f"{each}.example.org", "type": "a", "credentialsRef": {}} for each in named(n, at)],
    ),
    (
        "conditions",
        SEED,
        "status.conditions",
        lambda n, at: [{"type": each, "status": "True"} for each in named(n, at)],
    ),
    (
        "versions",
        CLOUD_PROFILE,
        "spec.kubernetes.versions",
        lambda n, at: [{"version": f"1.{each + at}.0"} for each in range(n)],
    ),
    (
        "machine types",
        CLOUD_PROFILE,
        "spec.machineTypes",
        lambda n, at: [{"name": each, "cpu": "1", "gpu": "0", "memory": "1Gi"} for each in named(n, at)],
    ),
    (
        "machine images",
        CLOUD_PROFILE,
        "spec.machineImages",
        lambda n, at: [{"name": each, "versions": [{"version": "1.2.3"}]} for each in named(n, at)],
    ),
    (
        "regions",
        CLOUD_PROFILE,
        "spec.regions",
        lambda n, at: [{"name": each, "zones": [{"name": "a"}]} for each in named(n, at)],
    ),
    (
        "members",
        PROJECT,
        "spec.members",
        lambda n, at: [{"kind": "User", "name": each, "role": "viewer"} for each in named(n, at)],
    ),
    ("a whitelist", PROJECT, "spec.tolerations.whitelist", lambda n, at: [{"key": each} for each in named(n, at)]),
    ("metrics", QUOTA, "spec.metrics", lambda n, at: dict.fromkeys(named(n, at), "10")),
    (
        "ranges of a bastion",
        BASTION,
        "spec.ingress",
        lambda n, at: [{"ipBlock": {"cidr": f"10.{(each + at) // 256 % 256}.{each % 256}.0/24"}} for each in range(n)],
    ),
    (
        "tolerations of an exposure class",
        EXPOSURE_CLASS,
        "scheduling.tolerations",
        lambda n, at: [{"key": each} for each in named(n, at)],
    ),
    ("text", SHOOT, "spec.purpose", lambda n, _at: "a" * 32 * n),
    ("digits", SHOOT, "spec.kubernetes.version", lambda n, _at: "9" * 32 * n),
    ("digits of a duration", SHOOT, "spec.kubernetes.clusterAutoscaler.scanInterval", lambda n, _at: "9" * 32 * n),
    ("digits of a quantity", CLOUD_PROFILE, "spec.machineTypes", lambda n, _at: [{"name": "a", "cpu": "9" * 32 * n}]),
    ("text of an annotation", SHOOT, "metadata.annotations.a", lambda n, _at: "a" * 32 * n),
    ("a long key", SHOOT, "metadata.labels", lambda n, _at: {"a/" * 16 * n: "a"}),
    ("an unknown field's name", SHOOT, "spec", lambda n, _at: {**SHOOT["spec"], "a" * 32 * n: 1}),
]


def creation(name: str, document: Document, path: str, entries: Entries) -> Row:
    def body(length: int) -> bytes:
        return encode(with_value(document, path, entries(length // 32, 0)))

    return Row(f"creation with {name}", body, created)


def update(name: str, document: Document, path: str, entries: Entries) -> Row:
    def pair(length: int) -> tuple[Document, ...]:
        return tuple(with_value(document, path, entries(length // 32, at)) for at in (0, 10**6))

    return Row(f"update of {name}", pair, updated)


def patched(length: int) -> tuple[Document, ...]:
    return tuple({"a": {name: {"b": 1} for name in named(length // 32, at)}} for at in (0, 10**6))


def between(pair: tuple[Document, Document]) -> Document:
    return merge_patch_between(*pair)


def greatest_key_first(length: int) -> Document:
    return {"z": 1, **dict.fromkeys(named(length // 32, 10**6), "a")}


def secrets(length: int) -> Document:
    return a_shoot(spec={name: {"a": name} for name in named(length // 32)})


def tolerations(length: int) -> Tolerations:
    return tuple((name, None) for name in named(length // 32))


def effective(given: Tolerations) -> Tolerations:
    return effective_tolerations(given, given, given)


MANIFESTS = [
    *(creation(*each) for each in LISTS),
    *(update(*each) for each in LISTS),
    Row("canonical JSON", greatest_key_first, canonical),
    Row("patch between", patched, between),
    Row("redaction", secrets, redacted),
    Row("effective tolerations", tolerations, effective),
]


def processor_seconds(row: Row, text: Any) -> float:
    began = time.process_time()
    with tolerated():
        row.read(text)
    return time.process_time() - began


def ratio_of(row: Row) -> float:
    """The cost of twice a text by the cost of the text; 0 where even the longest costs next to nothing."""
    length = 4096
    while processor_seconds(row, row.text(length)) < LEAST_SECONDS:
        length *= 4
        if length > LONGEST:
            return 0
    text, twice = row.text(length), row.text(2 * length)
    costs = [(processor_seconds(row, text), processor_seconds(row, twice)) for _ in range(ROUNDS)]
    return statistics.median(of_twice for _, of_twice in costs) / statistics.median(of_one for of_one, _ in costs)


@pytest.fixture(autouse=True)
def without_collections() -> Iterator[None]:
    """Garbage of other tests is not collected on a row's account."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in (*TEXTS, *MANIFESTS)])
def test_twice_the_length_costs_at_most_two_and_a_half_times_as_much(row: Row) -> None:
    ratios: list[float] = []
    while not ratios or (ratios[-1] > MOST and len(ratios) < TRIES):
        ratios.append(ratio_of(row))
    assert min(ratios) <= MOST, f"{row.name}: {', '.join(f'{each:.2f}' for each in ratios)}"


def test_a_reader_whose_time_is_quadratic_is_found() -> None:
    def quadratic(text: str) -> int:
        return sum(text.count("b", start) for start in range(0, len(text), 256))

    assert ratio_of(Row("quadratic", repeated("a"), quadratic)) > MOST
