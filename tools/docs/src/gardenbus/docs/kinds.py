"""The page of all kinds: their names, and the fields that Gardenbus itself reads."""

import types
from collections.abc import Iterator, Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from gardenbus.apiserver.domain.kind_actors import actors_of
from gardenbus.common.api.fields.kinds import sent_shape
from gardenbus.common.api.garden.cloudprofiles import CloudProfile, NamespacedCloudProfile, RegionConfigMap
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.garden.seed_autoscalers import SeedAutoscaler
from gardenbus.common.api.garden.seeds import Seed
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.api.views import Metadata, TypedView
from gardenbus.docs.json_schemas import FLEET_VIEWS
from gardenbus.docs.markdown import row, table
from gardenbus.docs.settings import type_text
from gardenbus.kubeapi.domain.field_docs import field_docs

VIEWS: Mapping[str, type[TypedView]] = {
    "Shoot": Shoot,
    "Seed": Seed,
    "CloudProfile": CloudProfile,
    "NamespacedCloudProfile": NamespacedCloudProfile,
    "Project": Project,
    "SeedAutoscaler": SeedAutoscaler,
    "ConfigMap": RegionConfigMap,
    **{", ".join(kind for kind, each in FLEET_VIEWS.items() if each is view): view for view in FLEET_VIEWS.values()},
}
"""Views that are read, by the kinds that have one in common."""

_HEAD = """# Kinds

Manifests are Gardener's; every field is stored and given back as it came ([manifests](../manifests.md) says which are
rejected, and what of the rest has no effect). Below are the kinds that are taken, and those
fields that have an effect on where a shoot goes, on how many seeds there are, or on which clusters a
[bundle](../placement.md) goes to. ManagedSeed and ManagedSeedSet hold templates of other kinds: see
[seeds that grow](../seed-management.md). Each of these kinds has a JSON Schema in `docs/reference/schemas`.
"""


def kinds_page() -> str:
    """The page's Markdown."""
    rows = [
        row(
            kind.kind,
            f"`{kind.api_version}`",
            f"`{kind.plural}`" + "".join(f", `{name}`" for name in kind.short_names),
            {True: "yes", False: "no", None: "as the manifest says"}[kind.namespaced],
            "checked" if sent_shape(kind.api_version, kind.kind) else "kept as they are",
            actors_of(kind) or "nothing",
        )
        for kind in KINDS.values()
    ]
    parts = [_HEAD, table(("kind", "apiVersion", "names", "namespaced", "fields are", "acted on by"), rows)]
    for name, view in VIEWS.items():
        fields = [row(f"`{path}`", text, meaning) for path, text, meaning in _fields(view, "")]
        parts += [f"## {name}\n", table(("field", "value", "meaning"), fields)]
    return "\n".join(parts)


def _fields(view: type[msgspec.Struct], prefix: str) -> Iterator[tuple[str, str, str]]:
    docs, hints = field_docs(view), get_type_hints(view, include_extras=True)
    for field in msgspec.structs.fields(view):
        path, hint = prefix + field.encode_name, hints[field.name]
        inner, suffix = _inside(hint)
        if inner is Metadata or path == "kind":
            continue
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            if inner.__doc__ and suffix:
                yield path + suffix, "list", docs.get(field.name) or inner.__doc__
            yield from _fields(inner, path + suffix + ".")
        else:
            yield path, _text(hint), docs.get(field.name, "")


def _inside(hint: Any) -> tuple[Any, str]:
    """The type inside a hint, and its addition to the path: `[]` for lists."""
    if get_origin(hint) in (Union, types.UnionType):
        first = next(each for each in get_args(hint) if each is not type(None))
        return _inside(first)
    if get_origin(hint) in (tuple, list):
        return get_args(hint)[0], "[]"
    return hint, ""


def _text(hint: Any) -> str:
    inner, suffix = _inside(hint)
    if get_origin(inner) is dict:
        return "mapping"
    if {int, str} <= set(get_args(hint)):
        return f"{type_text(int)} or {type_text(str)}"
    return f"list of {type_text(inner)}" if suffix else type_text(inner)
