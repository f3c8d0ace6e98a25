r"""JSONPath templates as kubectl's `-o jsonpath=`: parser and evaluation. Pure.

| written | means |
|---|---|
| `{.spec.region}`, `{$.spec.region}` | a field; what is missing prints nothing |
| `{.metadata.labels.a\.b/c}`, `{.metadata.labels['a.b/c']}` | a key with dots |
| `{.items[*].metadata.name}`, `{.spec.*}` | every entry of a list, every value of a mapping |
| `{.items[0]}`, `{.items[-1]}`, `{.items[1:3]}`, `{.items[0,2]}` | some entries |
| `{..name}` | every `name` at any depth |
| `{.status.conditions[?(@.type=="Ready")].status}` | entries for which it holds (`== != < <= > >=`, or only `@.x`) |
| `{range .items[*]}{.metadata.name}{"\n"}{end}` | once for each |
| text outside of braces, `{"\t"}` inside | itself |

Several results of one expression are printed with blanks between. A template without any brace is one expression.
Functions, scripts and `&&` in filters are rejected by name. Source: kubernetes.io/docs/reference/kubectl/jsonpath.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from gardenbus.common.errors import BadRequest

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_FIELD = re.compile(r"(?:\\.|[^\s.\[\]{}()=!<>&|,\\])+")
_QUOTED = re.compile(r"'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\"")
_NUMBERS = re.compile(r"\s*(-?\d*)\s*(?::\s*(-?\d*)\s*(?::\s*(-?\d*)\s*)?)?")
_COMPARISON = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CLOSERS = {"'": "'", '"': '"'}


class Keys(NamedTuple):
    """Values of these keys."""

    names: tuple[str, ...]


class Every(NamedTuple):
    """All entries of a list, all values of a mapping."""


class Picked(NamedTuple):
    """Entries of a list."""

    slices: tuple[slice, ...]


class Anywhere(NamedTuple):
    """Values of a key at any depth; "*": all values."""

    name: str


class FilterSegment(NamedTuple):
    """Entries for which a comparison holds; without an operator those that have the left side."""

    left: "Operand"
    comparison: str = ""
    right: "Operand | None" = None


Segment = Keys | Every | Picked | Anywhere | FilterSegment
JsonPath = tuple[Segment, ...]


class Operand(NamedTuple):
    """One side of a comparison: a path from the entry, or a value."""

    path: JsonPath | None
    value: Any = None


class Literal(NamedTuple):
    """Text that stands for itself."""

    text: str


class Printed(NamedTuple):
    """The results of a path."""

    path: JsonPath


class Range(NamedTuple):
    """Template inside `range`, rendered for each result of a path."""

    path: JsonPath
    inside: tuple["Node", ...]


Node = Literal | Printed | Range


LONGEST = 64 * 1024
"""Characters of a template: no shell passes on many more in one argument."""


def parse_path(text: str) -> JsonPath:
    """Read one expression: `{.spec.region}`, `.spec.region` or `spec.region`. Raises BadRequest."""
    _check_length(text)
    inside = text.strip()
    if inside.startswith("{") and inside.endswith("}"):
        inside = inside[1:-1].strip()
    if inside and inside[0] not in "$@.[":
        inside = f".{inside}"
    reader = _PathParser(inside)
    path = reader.path()
    if not reader.is_at_end or not inside:
        raise reader.problem("a path was expected, as {.spec.region}")
    return path


def parse_template(text: str) -> tuple[Node, ...]:
    """Read a template. Raises BadRequest, saying where it cannot be read."""
    _check_length(text)
    if "{" not in text:
        return (Printed(parse_path(text)),)
    parts = list(_parts(text))
    nodes, rest = _nested(parts, 0, is_inside=False)
    if rest < len(parts):
        raise BadRequest("jsonpath: {end} without a {range …}")
    return nodes


def _check_length(text: str) -> None:
    if len(text) > LONGEST:
        raise BadRequest(f"jsonpath: it has {len(text)} characters, and at most {LONGEST} are read")


def rendered(nodes: Sequence[Node], document: Any) -> str:
    """Render a template for a document."""
    return "".join(_rendered(nodes, document, document))


def values_at(path: JsonPath, document: Any) -> list[Any]:
    """Everything that a path leads to."""
    found = [document]
    for step in path:
        found = [value for each in found for value in _step(step, each)]
    return found


def text_of(value: Any) -> str:
    """One result as it is printed: text bare, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _rendered(nodes: Sequence[Node], current: Any, root: Any) -> Iterator[str]:
    for node in nodes:
        match node:
            case Literal(text):
                yield text
            case Printed(path):
                yield " ".join(map(text_of, values_at(path, current)))
            case Range(path, inside):
                for each in values_at(path, current):
                    yield from _rendered(inside, each, root)


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """(is in braces, text) one after the other."""
    at = 0
    while at < len(text):
        opening = text.find("{", at)
        if opening < 0:
            yield False, text[at:]
            return
        if opening > at:
            yield False, text[at:opening]
        closing = _closing(text, opening)
        yield True, text[opening + 1 : closing].strip()
        at = closing + 1


def _closing(text: str, opening: int) -> int:
    quote = ""
    at = opening + 1
    while at < len(text):
        character = text[at]
        if character == "\\":
            at += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in _CLOSERS:
            quote = character
        elif character == "}":
            return at
        at += 1
    raise BadRequest(f"jsonpath: {text[opening:][:60]!r} has no closing brace")


def _nested(parts: Sequence[tuple[bool, str]], at: int, *, is_inside: bool) -> tuple[tuple[Node, ...], int]:
    nodes: list[Node] = []
    while at < len(parts):
        is_code, text = parts[at]
        at += 1
        if not is_code:
            nodes.append(Literal(text))
        elif text == "end":
            return tuple(nodes), (at if is_inside else at - 1)
        elif text.startswith("range"):
            inside, at = _nested(parts, at, is_inside=True)
            nodes.append(Range(parse_path(text.removeprefix("range")), inside))
        elif quoted := _QUOTED.fullmatch(text):
            nodes.append(Literal(_unquoted(quoted)))
        else:
            nodes.append(Printed(parse_path(text)))
    if is_inside:
        raise BadRequest("jsonpath: {range …} without its {end}")
    return tuple(nodes), at


def _unquoted(quoted: "re.Match[str]") -> str:
    text = quoted[1] if quoted[1] is not None else quoted[2]
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text)


class _PathParser:
    """Reads one expression from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def is_at_end(self) -> bool:
        return self.at >= len(self.text)

    def problem(self, expected: str) -> BadRequest:
        rest = self.text[self.at :]
        if rest.lstrip().startswith(("&&", "||")):
            expected = "one comparison a filter; write [?(…)][?(…)] or use jq on -o json"
        elif rest.startswith("("):
            expected = "functions and scripts are not known here; use jq on -o json"
        return BadRequest(f"jsonpath: {self.text!r}: at {rest[:40]!r}: {expected}")

    def accept(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def matched(self, pattern: "re.Pattern[str]") -> "re.Match[str] | None":
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def path(self) -> JsonPath:
        if not self.accept("$"):
            self.accept("@")
        steps: list[Segment] = []
        while not self.is_at_end and self.text[self.at] in ".[":
            steps += self._one_step()
        return tuple(steps)

    def _one_step(self) -> Sequence[Segment]:
        if self.accept("["):
            return (self._bracket(),)
        if self.accept(".."):
            if self.accept("["):
                return (Anywhere("*"), self._bracket())
            return (Anywhere(self._name()),)
        self.accept(".")
        if self.is_at_end:
            return ()  # `{.}`: all of it
        if self.accept("["):
            return (self._bracket(),)
        name = self._name()
        return (Every() if name == "*" else Keys((name,)),)

    def _name(self) -> str:
        found = self.matched(_FIELD)
        if found is None:
            raise self.problem("the name of a field was expected")
        return re.sub(r"\\(.)", r"\1", found[0])

    def _bracket(self) -> Segment:
        step = self._bracketed()
        self.matched(re.compile(r"\s*"))
        if not self.accept("]"):
            raise self.problem("] was expected")
        return step

    def _bracketed(self) -> Segment:
        self.matched(re.compile(r"\s*"))
        if self.accept("*"):
            return Every()
        if self.accept("?("):
            return self._filter()
        if quoted := self.matched(_QUOTED):
            names = [_unquoted(quoted)]
            while self.matched(re.compile(r"\s*,\s*")):
                if not (quoted := self.matched(_QUOTED)):
                    raise self.problem("another quoted key was expected")
                names.append(_unquoted(quoted))
            return Keys(tuple(names))
        slices = [self._slice()]
        while self.accept(","):
            slices.append(self._slice())
        return Picked(tuple(slices))

    def _slice(self) -> slice:
        start = self.at
        found = self.matched(_NUMBERS)
        if found is None or not found[0].strip() or found[1] == "-":
            self.at = start
            raise self.problem("a number, a quoted key, * or ?(…) was expected")
        if ":" not in found[0]:
            index = int(found[1])
            return slice(index, index + 1 or None)
        begin, end, step = (int(group) if group else None for group in found.groups())
        if step == 0:
            raise self.problem("a step of 0 leads nowhere")
        return slice(begin, end, step)

    def _filter(self) -> FilterSegment:
        left = self._operand()
        comparison = self.matched(_COMPARISON)
        where = FilterSegment(left, comparison[1], self._operand()) if comparison else FilterSegment(left)
        self.matched(re.compile(r"\s*"))
        if not self.accept(")"):
            raise self.problem("a comparison and ) were expected")
        return where

    def _operand(self) -> Operand:
        self.matched(re.compile(r"\s*"))
        if self.text[self.at : self.at + 1] in ("@", "$"):
            if self.text[self.at] == "$":
                raise self.problem("a filter looks at its own entry: begin with @")
            return Operand(self.path())
        if quoted := self.matched(_QUOTED):
            return Operand(None, _unquoted(quoted))
        if word := self.matched(re.compile(r"[-+\w.]+")):
            try:
                return Operand(None, msgspec.json.decode(word[0]))
            except msgspec.MsgspecError:
                self.at -= len(word[0])
        raise self.problem('@.field, "text", a number, true or false was expected')


def _step(step: Segment, value: Any) -> Iterator[Any]:
    match step:
        case Keys(names):
            if isinstance(value, dict):
                mapping = cast("dict[str, Any]", value)
                yield from (mapping[name] for name in names if name in mapping)
        case Every():
            yield from _entries(value)
        case Picked(slices):
            if isinstance(value, list):
                yield from (entry for each in slices for entry in cast("list[Any]", value)[each])
        case Anywhere(name):
            yield from _anywhere(name, value)
        case FilterSegment():
            yield from (entry for entry in _entries(value) if _matches(step, entry))


def _entries(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _anywhere(name: str, value: Any) -> Iterator[Any]:
    if name == "*":
        yield value
    elif isinstance(value, dict) and name in value:
        yield value[name]
    for each in _entries(value):
        yield from _anywhere(name, each)


def _matches(where: FilterSegment, entry: Any) -> bool:
    lefts = _operand_values(where.left, entry)
    if where.right is None:
        return bool(lefts)
    rights = _operand_values(where.right, entry)
    if not lefts or not rights:
        return False
    try:
        return _OPERATORS[where.comparison](lefts[0], rights[0])
    except TypeError:
        return False


def _operand_values(operand: Operand, entry: Any) -> list[Any]:
    return [operand.value] if operand.path is None else values_at(operand.path, entry)
