"""Which objects are meant by `shoots`, `shoot apollo -n garden-dev`, `seed/aws`."""

from collections.abc import Iterable
from typing import NamedTuple

from gardenbus.cli.client import ApiClient
from gardenbus.cli.documents import as_mapping
from gardenbus.common.errors import BadRequest, NotFound, Unsupported
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import CLUSTER_SCOPE
from gardenbus.common.resources.kinds import by_word


class Meant(NamedTuple):
    """A kind (singular, or the word as it was written where it is not known here), and names of it."""

    kind: str
    names: tuple[str, ...]
    is_namespaced: bool


def meant(words: list[str]) -> Meant:
    """Read `KIND`, `KIND NAME…` or `KIND/NAME`. Raises BadRequest."""
    kind, slash, name = words[0].partition("/")
    names = ([name] if slash else []) + words[1:]
    if not kind or (slash and not name):
        raise BadRequest(f"{words[0]!r}: write KIND, KIND NAME or KIND/NAME")
    try:
        spec = by_word(kind)
    except Unsupported:
        return Meant(kind.lower(), tuple(names), is_namespaced=True)
    return Meant(spec.singular, tuple(names), is_namespaced=spec.namespaced is not False)


def meant_all(words: list[str]) -> list[Meant]:
    """Read as kubectl does: `KIND[,KIND…] [NAME…]`, or KIND/NAME several times. Raises BadRequest.

    Each kind comes once, with its names in the order in which they were written.
    """
    first = words[0]
    if "/" not in first:
        kinds = [kind for kind in first.split(",") if kind]
        if not kinds:
            raise BadRequest(f"{first!r}: write KIND[,KIND…], KIND NAME… or KIND/NAME…")
        return _merged(meant([kind, *words[1:]]) for kind in kinds)
    separate = [word for word in words if not _is_kind_and_name(word)]
    if not separate:
        return _merged(meant([word]) for word in words)
    if broken := [word for word in separate if "/" in word]:
        raise BadRequest(f"{broken[0]!r}: write KIND/NAME")
    return [meant(words)]


def _is_kind_and_name(word: str) -> bool:
    kind, slash, name = word.partition("/")
    return bool(kind and slash and name)


def _merged(several: Iterable[Meant]) -> list[Meant]:
    merged: dict[str, Meant] = {}
    for one in several:
        before = merged.get(one.kind)
        names = tuple(dict.fromkeys((*(before.names if before else ()), *one.names)))
        merged[one.kind] = one._replace(names=names)
    return list(merged.values())


async def found(api: ApiClient, wanted: Meant, name: str, namespace: str | None) -> Document:
    """One object; without a namespace the only one of that name. Raises RefusedByApi, NotFound, BadRequest."""
    if not wanted.is_namespaced:
        return await api.ask(f"get.{wanted.kind}.{CLUSTER_SCOPE}.{name}")
    if namespace is None and "/" in name:
        namespace, name = name.split("/", 1)
    if namespace is not None:
        return await api.ask(f"get.{wanted.kind}.{namespace}.{name}")
    everywhere = await api.items(wanted.kind, {"fieldSelector": f"metadata.name={name}"})
    if len(everywhere) > 1:
        places = ", ".join(str(as_mapping(each.get("metadata")).get("namespace")) for each in everywhere)
        raise BadRequest(f"{wanted.kind} {name} is in several namespaces ({places}): say which with -n")
    if everywhere:
        return everywhere[0]
    raise NotFound(f"{wanted.kind} {name} is not there, in no namespace")


def subject_tail(wanted: Meant, name: str, namespace: str | None) -> str:
    """`<kind>.<ns>.<name>` of an object. Raises BadRequest when the namespace is missing."""
    if not wanted.is_namespaced:
        return f"{wanted.kind}.{CLUSTER_SCOPE}.{name}"
    if namespace is None and "/" in name:
        namespace, name = name.split("/", 1)
    if namespace is None:
        raise BadRequest(f"{wanted.kind} {name}: say in which namespace, with -n")
    return f"{wanted.kind}.{namespace}.{name}"


def shown_name(document: Document) -> str:
    """`shoot.core.gardener.cloud/apollo`, as `-o name` prints."""
    group, _, _ = str(document.get("apiVersion") or "").rpartition("/")
    kind = str(document.get("kind") or "").lower()
    return f"{kind}{f'.{group}' if group else ''}/{as_mapping(document.get('metadata')).get('name')}"
