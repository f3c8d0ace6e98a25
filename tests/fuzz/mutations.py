"""Changes that make inputs of manifests: of values at places, of the text, and of what comes beside it.

All are drawn from the random source that is passed in, so that a seed and a number repeat an input.
"""

import copy
import json
import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.fields.shapes import FieldType, Shape
from tests.fuzz.corpus import Path_, Template, value_of

TEXTS: Sequence[str] = (
    *("", " ", "\n", "\t", "\0", "x", "-", "_", ".", "..", "/", "*", ">", "%", "%s", "{}", "{0}", "$", ":", "=", ","),
    *(
        "é",
        "\u202egarden",
        "\u0000a",
        "\u0661\u0662",
        "²",
        "ﬁ",
        "\U0001d49c",
        "😀",
        "\ufeff",
        "\u2028",
        "a\u0301",
        "\u017f",
        "İ",
    ),
    *("\ud800", "a\udfff", "\udc80b", "\ud83d"),
    *("true", "null", "NaN", "Infinity", "-0", "1e999", "0x1f", "1_000", "9" * 30, "0.1", "-1", "1e-9", "\u0661"),
    *("1Ki", "-5Gi", "1e3", "0.5m", "9Ei", "99999999999Ei", "1 Gi", "Ki", "+1", "1E", "1e400Ki", "0", "12e-400"),
    *("10.0.0.0/8", "10.0.0.0/33", "::/0", "::1/129", "0.0.0.0/0", "10.0.0.1/8", "1.2.3", "fe80::%eth0/64", "/8"),
    *("0s", "-1h", "1h1h", "99999999h", "1.5e300s", "1d", "s", "1ns", "9223372036854775807ns", "1h-1m"),
    *(
        "2026-02-30T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00+14:00",
        "2026-01-02",
        "2026-13-01T00:00:00Z",
    ),
    *("2026-01-02T03:04:05.999999999999Z", "2026-01-02T24:00:00Z", "2026-01-02T03:04:60Z", "2026-01-02T03:04:05-99:99"),
    *("aws", "aws-eu1", "apollo", "garden", "garden-dev", "internet", "grove", "default-scheduler", "seed-a", "Shoot"),
    *("a.b", "A", "a" * 63, "a" * 64, "a" * 253, "a" * 254, "x/y", "/x", "x/", "a/b/c", "kubernetes.io/x", "-a", "a-"),
    *("1.34.1", "1.34", "99.99.99", "1.34.1-rc.1", "v1", "1.", "25%", "-25%", "101%", "1e2%", "%5", "100000000000000%"),
    *("reconcile", "retry", "migrate", "Delete", "Succeeded", "Pending", "Failed", "Migrate", "In", "NotIn", "Exists"),
    *("true,protected,minimumVolumeSize=20Gi", "true,resources.capacity.shoots=9999999999999999999999", "true,a=b=c"),
    *(
        "true,ingress.controller.providerConfig.a.b=1e999,ingress.controller.providerConfig.a=1",
        "true,backup.provider=",
    ),
    *("true,ingress.controller.providerConfig.a=" + "9" * 30, "gardener", "foregroundDeletion", "v1beta1", "List"),
    "a" * 5000,
)
"""Texts that something reads as a number, a time, a range, a name, a version, a word of its own, or not at all."""

NUMBERS: Sequence[Any] = (
    *(0, 1, -1, 2, 63, 64, 100, 101, 255, 1000, 65536, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63 - 1, -(2**63)),
    *(0.0, -0.0, 0.5, 1.0, 1.5, -1.5, 1e-300, 5e-324, 1e15, 1e16, 1e300, 1.7976931348623157e308, 3.0e10),
)
IMPOSSIBLE_NUMBERS: Sequence[Any] = (2**63, 2**64, -(2**70), 10**60, float("nan"), float("inf"), -float("inf"))
"""Numbers that no manifest can keep."""

OTHERS: Sequence[Any] = (
    *(None, True, False, [], {}, [None], [[]], [{}], [""], [0], ["a", "a"], {"": ""}, {"a": None}, {"a": {"a": {}}}),
    *({"name": "a"}, [{"name": "a"}, {"name": "a"}], [{"type": "a"}], {"\ud800": 1}, {"a.b/c": "d"}, {"key": "a"}),
    *([[[[[[[[]]]]]]]], ["a", 1, None, {}, []], {"x" * 300: "y"}, {str(number): number for number in range(60)}),
)

HEADER_VALUES: Sequence[str] = (
    *(
        "",
        "true",
        "false",
        "strict",
        "warn",
        "ignore",
        "yes",
        "0",
        "-1",
        "9" * 19,
        "9" * 5000,
        "1.2",
        "\u0661.\u0662",
        "²",
    ),
    *("shoot.garden-dev.apollo=1", "seed._.aws-eu1=", "a.b.c=x", "=", "shoot.garden-dev.apollo=99999999999999999999"),
    *("status", "apply", "delete", "event", "exists", "gone", "a\ud800", "é", "\0", "00-" + "a" * 32 + "-" + "b" * 16),
)

FRAGMENTS: Sequence[bytes] = (
    *(b"", b"{", b"}", b"[", b"]", b",", b":", b'"', b"'", b"\\", b"\\u", b"\\ud800", b"\\ud83d\\ude00", b"\\u0000"),
    *(
        b"\x00",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\n",
        b"\r\n",
        b"\t",
        b"#",
        b"- ",
        b"---\n",
        b"...\n",
    ),
    *(
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e999",
        b"9" * 400,
        b"0" * 25,
        b"1" + b"0" * 308,
        b"-",
        b"--1",
        b"01",
        b".5",
    ),
    *(
        b"&a ",
        b"*a",
        b"<<: ",
        b"!!binary ",
        b"!!python/object:os.system ",
        b"? ",
        b"|\n",
        b">-\n",
        b"%YAML 1.1\n",
        b"@",
    ),
    *(b'"kind":"Seed",', b'"metadata":{},', b'"spec":null,', b'"a":{"a":1,"a":2},', b"[" * 70, b'{"a":' * 70, b"null"),
)

_ABSENT = object()

Edit = Callable[[Any, FieldType | None, random.Random], Any]


def mutated(template: Template, chance: random.Random) -> Document:
    """The template's manifest with one to three changes; shares what is not changed with it."""
    document = template.document
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        place = chance.choice(template.places)
        edit = chance.choice(EDITS)
        document = cast("Document", edited(document, place.path, lambda value: edit(value, place.type, chance)))  # noqa: B023
    return document


def edited(value: Any, path: Path_, change: Callable[[Any], Any]) -> Any:
    """A copy of a value with what is at a path changed; the value itself where there is nothing at the path."""
    if not path:
        return change(value)
    step = path[0]
    if isinstance(value, dict):
        mapping = cast("dict[Any, Any]", value)
        if step not in mapping:
            return mapping
        below = edited(mapping[step], path[1:], change)
        if below is _ABSENT:
            return {name: part for name, part in mapping.items() if name != step}
        return {**mapping, step: below}
    if isinstance(value, list) and isinstance(step, int) and step < len(cast("list[Any]", value)):
        entries = cast("list[Any]", value)
        below = edited(entries[step], path[1:], change)
        return [*entries[:step], *([] if below is _ABSENT else [below]), *entries[step + 1 :]]
    return cast("Any", value)


# ------------------------------------------------------------------------------------------ values


def anything(chance: random.Random) -> Any:
    """A value of any type."""
    draw = chance.random()
    if draw < 0.5:
        return chance.choice(TEXTS)
    if draw < 0.7:
        return chance.choice(NUMBERS)
    return chance.choice(OTHERS) if draw < 0.97 else chance.choice(IMPOSSIBLE_NUMBERS)


def _dropped(_value: Any, _kind: FieldType | None, _chance: random.Random) -> Any:
    return _ABSENT


def _retyped(_value: Any, _kind: FieldType | None, chance: random.Random) -> Any:
    return anything(chance)


def _extreme(value: Any, kind: FieldType | None, chance: random.Random) -> Any:
    """Another value of the same type, at the edge of what it may be."""
    if kind in ("integer", "number") or isinstance(value, int | float):
        return chance.choice(NUMBERS)
    if isinstance(kind, str) or isinstance(value, str):
        return chance.choice(TEXTS)
    return _repeated(value, kind, chance)


def _typed(value: Any, kind: FieldType | None, chance: random.Random) -> Any:
    """A value as the kind's fields say; with some more of its fields where it is a mapping."""
    if isinstance(kind, Shape) and isinstance(value, dict) and kind.fields:
        names = chance.choices(list(kind.fields), k=chance.randrange(1, 4))
        return {**cast("Document", value), **{name: value_of(kind.fields[name], chance) for name in names}}
    return anything(chance) if kind is None else value_of(kind, chance)


def _repeated(value: Any, kind: FieldType | None, chance: random.Random) -> Any:
    """Entries twice, and fields of odd names."""
    if isinstance(value, list):
        entries = cast("list[Any]", value)
        return entries + entries if chance.random() < 0.9 else (entries or [None]) * chance.randrange(2, 300)
    if isinstance(value, dict):
        mapping = cast("Document", value)
        part: Any = chance.choice(list(mapping.values())) if mapping else value_of(kind or "open", chance)
        return {**mapping, chance.choice(TEXTS): part}
    return f"{value}{value}" if isinstance(value, str) else [value, value]


def _renamed(value: Any, _kind: FieldType | None, chance: random.Random) -> Any:
    if not isinstance(value, dict) or not value:
        return anything(chance)
    mapping = cast("Document", value)
    name: str = chance.choice(list(mapping))
    other = chance.choice((name.upper(), name[:-1], f"{name}s", f" {name}", chance.choice(TEXTS)))
    return {(other if one == name else one): part for one, part in mapping.items()}


def _swapped(value: Any, _kind: FieldType | None, chance: random.Random) -> Any:
    """Values of two fields, or the order of entries, exchanged."""
    if isinstance(value, dict) and value:
        mapping = cast("Document", value)
        one, other = chance.choice(list(mapping)), chance.choice(list(mapping))
        return {**mapping, one: mapping[other], other: mapping[one]}
    return cast("list[Any]", value)[::-1] if isinstance(value, list) else str(cast("Any", value))


def _wrapped(value: Any, _kind: FieldType | None, chance: random.Random) -> Any:
    wrap: Any = chance.choice(([value], {"a": value}, [[value]], {"items": [value]}))
    if chance.random() < 0.05:
        for _ in range(chance.choice((10, 58, 62, 64, 66, 120, 300, 900))):
            wrap = {"a": wrap} if chance.random() < 0.5 else [wrap]
    return wrap


def _nothing(_value: Any, _kind: FieldType | None, _chance: random.Random) -> Any:
    return None


EDITS: Sequence[Edit] = (
    *(_dropped, _dropped, _retyped, _retyped, _extreme, _extreme, _extreme, _typed, _typed, _typed),
    *(_repeated, _renamed, _swapped, _wrapped, _nothing),
)


# ------------------------------------------------------------------------------------------ texts


def encoded(value: Any, chance: random.Random) -> bytes:
    """A value as JSON in one of its forms, also where no strict writer would write it."""
    if chance.random() < 0.85:
        try:
            return encode(value)
        except (UnicodeEncodeError, OverflowError, ValueError, msgspec.MsgspecError, RecursionError):
            pass
    escaped = chance.random() < 0.7
    text = json.dumps(value, ensure_ascii=escaped, indent=1 if chance.random() < 0.1 else None)
    return text.encode("utf-8", "surrogatepass")


def damaged(body: bytes, chance: random.Random) -> bytes:
    """A body cut off, with bytes inserted, repeated, replaced or taken away."""
    for _ in range(chance.randrange(1, 4)):
        here, there = sorted((chance.randrange(len(body) + 1), chance.randrange(len(body) + 1)))
        draw = chance.random()
        if draw < 0.2:
            body = body[:here]
        elif draw < 0.65:
            body = body[:here] + chance.choice(FRAGMENTS) + body[here + chance.randrange(2) :]
        elif draw < 0.8:
            body = body[:there] + body[here : min(there, here + 200)] + body[there:]
        elif draw < 0.9:
            body = body[:here] + bytes((chance.randrange(256),)) + body[here + 1 :]
        else:
            body = body[:here] + body[min(there, here + 40) :]
    return body


def as_yaml(value: Any, chance: random.Random, level: int = 0) -> str:
    """A value as YAML, in block or flow style; texts are plain more often than is good for them."""
    if isinstance(value, dict) and value and level < 6:
        pad = "  " * level
        lines = [f"{pad}{_plain(name, chance)}: {_below(part, chance, level)}" for name, part in value.items()]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return "\n".join(lines)
    return _plain(value, chance)


def _below(value: Any, chance: random.Random, level: int) -> str:
    is_block = isinstance(value, dict) and bool(cast("Document", value)) and level < 5
    return f"\n{as_yaml(cast('Any', value), chance, level + 1)}" if is_block else _plain(cast("Any", value), chance)


def _plain(value: Any, chance: random.Random) -> str:
    if isinstance(value, str) and chance.random() < 0.7:
        return value
    return json.dumps(value)


def enlarged(document: Document, chance: random.Random) -> Document:
    """A manifest with a list or mapping of thousands, or a text of hundreds of thousands."""
    size = chance.choice((2_000, 10_000, 20_000))
    big: Any = chance.choice(
        (
            "a" * size * 20,
            [{"name": str(number)} for number in range(size)],
            ["a"] * size,
            {str(number): "b" for number in range(size)},
            [copy.copy(OTHERS[-1]) for _ in range(size // 60)],
        )
    )
    for part in ("spec", "metadata"):
        if isinstance(document.get(part), dict) and chance.random() < 0.7:
            mapping = cast("Document", document[part])
            name = chance.choice(list(mapping)) if mapping else "a"
            return {**document, part: {**mapping, name: big}}
    return {**document, "data": big}


def header(chance: random.Random) -> str:
    """A header's value."""
    return chance.choice(HEADER_VALUES)
