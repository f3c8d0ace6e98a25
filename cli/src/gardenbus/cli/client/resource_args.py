"""Resource arguments: `shoots`, `shoot apollo -n garden-dev`, `seed/aws`, `seed.core.gardener.cloud/aws`."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import CLUSTER_SCOPE
from gardenbus.common.api.kinds import KINDS, by_qualified_word
from gardenbus.common.api.shown_values import with_article
from gardenbus.common.errors import BadRequest, NotFound, Unavailable, Unsupported

SAME_BEGINNING = 2
"""Characters with which the name of an object begins that may be meant: names are found by their beginning."""

NEARLY_THE_SAME = 0.75
"""Likeness (of `difflib`) of a name that may be meant."""


class ResourceArgs(NamedTuple):
    """A kind (singular, or the word as it was written where it is not known here), and names of it."""

    kind: str
    names: tuple[str, ...]
    is_namespaced: bool
    api_version: str = ""
    """The version in which objects are wanted, where it is not the one in which they are stored."""

    def in_version(self, document: Document) -> Document:
        """An object in the version that is wanted."""
        return {**document, "apiVersion": self.api_version} if self.api_version else document


def parse_resource(words: list[str]) -> ResourceArgs:
    """Read `KIND`, `KIND NAME…` or `KIND/NAME`. Raises BadRequest."""
    kind, slash, name = words[0].partition("/")
    names = ([name] if slash else []) + words[1:]
    if not kind or (slash and not name):
        raise BadRequest(f"{words[0]!r}: write KIND, KIND NAME or KIND/NAME")
    try:
        spec = by_qualified_word(kind)
    except Unsupported as error:
        word = _unregistered(kind)
        if not word:
            raise BadRequest(error.message) from error
        return ResourceArgs(word, tuple(names), is_namespaced=True)
    is_stored = spec.singular not in KINDS or spec.version == KINDS[spec.singular].version
    wanted = ResourceArgs(spec.singular, tuple(names), is_namespaced=spec.namespaced is not False)
    return wanted if is_stored else wanted._replace(api_version=spec.api_version)


def _unregistered(kind: str) -> str:
    """The word of a kind that only the landscape may know; "" for one that is of another group."""
    word = kind.lower().partition(".")[0]
    try:
        by_qualified_word(word)
    except Unsupported:
        return word
    return ""


def object_name(word: str, kind: str) -> str:
    """The name in an argument that may say its kind, `seed/aws` or `seed.core.gardener.cloud/aws`, or not: `aws`.

    What stands before the slash is a namespace where it is no word for the kind. Raises BadRequest for another kind.
    """
    before, slash, name = word.partition("/")
    if not slash:
        return word
    try:
        meant = by_qualified_word(before).singular
    except Unsupported:
        meant = ""
    if meant == kind and name:
        return name
    if "." in before or KINDS[kind].namespaced is False:
        raise BadRequest(f"{word!r}: {with_article(kind)} is meant here: write NAME or {kind}/NAME")
    return word


def parse_resources(words: list[str]) -> list[ResourceArgs]:
    """Read as kubectl does: `KIND[,KIND…] [NAME…]`, or KIND/NAME several times. Raises BadRequest.

    Each kind comes once, with its names in the order in which they were written.
    """
    first = words[0]
    if "/" not in first:
        kinds = [kind for kind in first.split(",") if kind]
        if not kinds:
            raise BadRequest(f"{first!r}: write KIND[,KIND…], KIND NAME… or KIND/NAME…")
        return _merged(parse_resource([kind, *words[1:]]) for kind in kinds)
    separate = [word for word in words if not _is_kind_and_name(word)]
    if not separate:
        return _merged(parse_resource([word]) for word in words)
    if broken := [word for word in separate if "/" in word]:
        raise BadRequest(f"{broken[0]!r}: write KIND/NAME")
    return [parse_resource(words)]


def _is_kind_and_name(word: str) -> bool:
    kind, slash, name = word.partition("/")
    return bool(kind and slash and name)


def _merged(several: Iterable[ResourceArgs]) -> list[ResourceArgs]:
    merged: dict[str, ResourceArgs] = {}
    for one in several:
        before = merged.get(one.kind)
        names = tuple(dict.fromkeys((*(before.names if before else ()), *one.names)))
        merged[one.kind] = one._replace(names=names)
    return list(merged.values())


async def get_object(api: ApiClient, wanted: ResourceArgs, name: str, namespace: str | None) -> Document:
    """One object; without a namespace the only one of that name. Raises ApiError, NotFound, BadRequest.

    An error about one that is not there names one that may be meant.
    """
    try:
        return await _found_object(api, wanted, name, namespace)
    except ApiError as error:
        if error.error.get("code") != NotFound.code or not (near := await _near_name(api, wanted, name, namespace)):
            raise
        raise ApiError({**error.error, "message": f"{error.message}; did you mean {near}?"}) from error
    except NotFound as error:
        if near := await _near_name(api, wanted, name, namespace):
            raise NotFound(f"{error.message}; did you mean {near}?") from error
        raise


async def _near_name(api: ApiClient, wanted: ResourceArgs, name: str, namespace: str | None) -> str:
    """The name of an object that is written nearly the same, with the same beginning; "" without one."""
    tail = f"{wanted.kind}.{namespace}" if namespace and wanted.is_namespaced else wanted.kind
    try:
        found = as_mapping(await api.call(f"names.{tail}", {"prefix": name[:SAME_BEGINNING]})).get("names")
    except (ApiError, Unavailable):
        return ""
    return next(iter(get_close_matches(name, map(str, found or ()), n=1, cutoff=NEARLY_THE_SAME)), "")


async def _found_object(api: ApiClient, wanted: ResourceArgs, name: str, namespace: str | None) -> Document:
    _check_name(wanted, name)
    if not wanted.is_namespaced:
        return wanted.in_version(await api.call(f"get.{wanted.kind}.{CLUSTER_SCOPE}.{name}"))
    if namespace is None and "/" in name:
        namespace, name = name.split("/", 1)
    if namespace is not None:
        return wanted.in_version(await api.call(f"get.{wanted.kind}.{namespace}.{name}"))
    everywhere = await api.items(wanted.kind, {"fieldSelector": f"metadata.name={name}"})
    if len(everywhere) > 1:
        places = ", ".join(str(as_mapping(each.get("metadata")).get("namespace")) for each in everywhere)
        raise BadRequest(f"{wanted.kind} {name} is in several namespaces ({places}): choose one with -n")
    if everywhere:
        return wanted.in_version(everywhere[0])
    raise NotFound(f"{wanted.kind} {name} not found in any namespace")


def _check_name(wanted: ResourceArgs, name: str) -> None:
    if not all(name.split(".")) or any(map(str.isspace, name)):
        raise BadRequest(f"{wanted.kind}: {name!r} is the name of no object")


def subject_tail(wanted: ResourceArgs, name: str, namespace: str | None) -> str:
    """`<kind>.<ns>.<name>` of an object. Raises BadRequest when the namespace is missing.

    Objects of unregistered kinds may have one or not: what is named without is one that has none.
    """
    _check_name(wanted, name)
    if not wanted.is_namespaced:
        return f"{wanted.kind}.{CLUSTER_SCOPE}.{name}"
    if namespace is None and "/" in name:
        namespace, name = name.split("/", 1)
    if namespace is None and wanted.kind not in KINDS:
        namespace = CLUSTER_SCOPE
    if namespace is None:
        raise BadRequest(f"{wanted.kind} {name}: name the namespace with -n")
    return f"{wanted.kind}.{namespace}.{name}"


def qualified_name(document: Document) -> str:
    """`shoot.core.gardener.cloud/apollo`, as `-o name` prints, of an object or a reference to one."""
    group, _, _ = str(document.get("apiVersion") or "").rpartition("/")
    kind = str(document.get("kind") or "").lower()
    name = (as_mapping(document.get("metadata")) or document).get("name")
    if "apiVersion" not in document and kind in KINDS:
        group = KINDS[kind].group
    return f"{kind}{f'.{group}' if group else ''}/{name}"
