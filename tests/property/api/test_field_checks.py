"""Manifests made of the known fields pass; one more field anywhere outside open parts is found with its path."""

from collections.abc import Iterator
from typing import Any, cast

from hypothesis import assume, given
from hypothesis import strategies as st

from gardenbus.apiserver.domain.fields.check import field_faults, path_text
from gardenbus.common.api.fields.kinds import kind_shape, kinds_with_shape
from gardenbus.common.api.fields.shapes import FieldType, ListOf, MapOf, Shape
from gardenbus.common.api.manifests.strict_json import ValuePath
from gardenbus.common.api.shown_values import with_article

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=5),
    "time": st.just("2026-01-02T03:04:05Z"),
    "duration": st.just("90s"),
    "bytes": st.just("YQ=="),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "number": st.one_of(st.integers(-9, 9), st.floats(allow_nan=False, allow_infinity=False)),
    "boolean": st.booleans(),
    "quantity": st.one_of(st.just("500m"), st.integers(0, 9), st.just(0.5)),
    "int-or-string": st.one_of(st.just("25%"), st.integers(0, 9)),
}
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(st.text(max_size=5), below, max_size=3)),
    max_leaves=8,
)
KINDS = st.sampled_from(kinds_with_shape())


def shape_of(kind: tuple[str, str]) -> Shape:
    shape = kind_shape(*kind)
    assert shape is not None
    return shape


@st.composite
def values(draw: st.DrawFn, kind: FieldType, depth: int = 0) -> Any:
    """A value of a type, or nothing."""
    if draw(st.integers(0, 9)) == 0:
        return None
    match kind:
        case "open":
            return draw(ANYTHING)
        case str():
            return draw(SCALARS[kind])
        case ListOf(entry):
            return [draw(values(entry, depth + 1)) for _ in range(draw(st.integers(0, 2)))]
        case MapOf(value):
            return {key: draw(values(value, depth + 1)) for key in draw(st.sets(st.text(max_size=5), max_size=2))}
        case Shape():
            return draw(mappings(kind, depth))


@st.composite
def mappings(draw: st.DrawFn, shape: Shape, depth: int = 0) -> dict[str, Any]:
    """Some fields of a shape, the fewer the deeper."""
    names = sorted(shape.fields)
    chosen = draw(st.sets(st.sampled_from(names), max_size=max(2, 6 - depth))) if names else set[str]()
    return {name: draw(values(shape.fields[name], depth + 1)) for name in sorted(chosen)}


def closed_mappings(
    value: Any, kind: FieldType, path: ValuePath = ()
) -> Iterator[tuple[ValuePath, dict[str, Any], Shape]]:
    """The mappings of a manifest that have certain fields and no others."""
    if value is None:
        return
    if isinstance(kind, Shape):
        mapping = cast("dict[str, Any]", value)
        yield path, mapping, kind
        for name, below in list(mapping.items()):
            yield from closed_mappings(below, kind.fields[name], (*path, name))
    elif isinstance(kind, ListOf):
        for index, entry in enumerate(cast("list[Any]", value)):
            yield from closed_mappings(entry, kind.entry, (*path, index))
    elif isinstance(kind, MapOf):
        for name, entry in cast("dict[str, Any]", value).items():
            yield from closed_mappings(entry, kind.value, (*path, name))


@given(st.data(), KINDS)
def test_whatever_is_made_of_known_fields_passes(data: st.DataObject, kind: tuple[str, str]) -> None:
    manifest = data.draw(mappings(shape_of(kind)))
    assert field_faults(manifest, shape_of(kind), kind=kind[1]) == ()


@given(st.data(), KINDS, st.text(max_size=8), ANYTHING)
def test_one_unknown_field_is_found_wherever_it_is(
    data: st.DataObject, kind: tuple[str, str], name: str, value: Any
) -> None:
    shape = shape_of(kind)
    manifest = data.draw(mappings(shape))
    path, mapping, closed = data.draw(st.sampled_from(list(closed_mappings(manifest, shape))))
    assume(name not in closed.fields)
    mapping[name] = value

    (fault,) = field_faults(manifest, shape, kind=kind[1])

    assert fault.path == (*path, name)
    assert fault.problem.field == path_text(fault.path)
    assert fault.message.startswith(f"is no field of {with_article(kind[1])}")


@given(KINDS, st.one_of(ANYTHING, st.dictionaries(st.sampled_from(["metadata", "spec", "data", "x"]), ANYTHING)))
def test_garbage_has_faults_and_nothing_breaks(kind: tuple[str, str], garbage: Any) -> None:
    document = cast("dict[str, Any]", garbage if isinstance(garbage, dict) else {"spec": garbage})
    for fault in field_faults(document, shape_of(kind), kind=kind[1]):
        assert fault.message
        assert fault.problem.field == path_text(fault.path)
