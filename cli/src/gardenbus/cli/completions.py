"""Shell completion: kinds, and names and namespaces that the landscape responds with within a second.

GARDENBUS_COMPLETION_SECONDS: more, or less, than a second.

Names come from an index, by what is typed already: of more than 500 the first ones and the last, so that a shell which
completes what all have in common completes no more.

A completion never says what went wrong: it offers nothing.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.fleet.placements import KINDS as PLACEMENT_KINDS
from gardenbus.common.api.kinds import by_qualified_word, understood_kinds
from gardenbus.common.errors import GardenbusError, Unsupported
from gardenbus.common.runtime import event_loop

if TYPE_CHECKING:
    from gardenbus.cli.client.api import ApiClient

DEFAULT_SECONDS = 1.0
OUTPUTS = ("wide", "yaml", "json", "name", "jsonpath=", "custom-columns=")
WAIT_CONDITIONS = ("condition=", "scheduled", "reconciled", "delete", "create", "jsonpath=")

Found = TypeVar("Found")


def outputs(incomplete: str) -> list[str]:
    """Values of `-o`."""
    return [each for each in OUTPUTS if each.startswith(incomplete)]


def wait_conditions(incomplete: str) -> list[str]:
    """Values of `--for` of `wait`."""
    return [each for each in WAIT_CONDITIONS if each.startswith(incomplete)]


def kinds(incomplete: str) -> list[str]:
    """Kinds by their plurals, and by what else they are called once that is begun."""
    before, comma, last = incomplete.rpartition(",")
    words = [spec.plural for spec in understood_kinds()]
    words += [word for spec in understood_kinds() for word in (spec.singular, *spec.short_names) if last]
    return [f"{before}{comma}{word}" for word in dict.fromkeys(words) if word.startswith(last.lower())]


def objects(ctx: Any, incomplete: str) -> list[str]:
    """The next word of `KIND NAME…` or `KIND/NAME…`."""
    words = [str(word) for word in ctx.params.get("words") or ()]
    kind, slash, name = incomplete.partition("/")
    if slash:
        return [f"{kind}/{each}" for each in names(ctx, kind, name)]
    if not words:
        return kinds(incomplete)
    return [] if "/" in words[0] else [each for each in names(ctx, words[0], incomplete) if each not in words[1:]]


def objects_of(kinds: Mapping[str, Sequence[str]], *, bare: str = "") -> Callable[[Any, str], list[str]]:
    """As `objects`, for a command that takes only these words for a kind, each → the kinds whose names it stands for.

    With `bare` the name of an object of that kind does without the word.
    """

    def names_of(ctx: Any, word: str, incomplete: str) -> list[str]:
        meant = kinds.get(word) or kinds.get(_singular_of(word)) or ()
        return sorted({name for kind in meant for name in names(ctx, kind, incomplete)})

    def completed(ctx: Any, incomplete: str) -> list[str]:
        words = [str(word).lower() for word in ctx.params.get("words") or ()]
        if words:
            return [name for name in names_of(ctx, words[0], incomplete) if name not in words[1:]]
        kind, slash, name = incomplete.partition("/")
        if slash:
            return [f"{kind}/{each}" for each in names_of(ctx, kind.lower(), name)]
        offered = [word for word in kinds if word.startswith(incomplete.lower())]
        return [*offered, *(names(ctx, bare, incomplete) if bare and incomplete else ())]

    return completed


def _singular_of(word: str) -> str:
    try:
        return by_qualified_word(word).singular
    except Unsupported:
        return ""


shoots = objects_of({"shoot": ("shoot",)})
"""`shoot NAME…`"""

seed_sets = objects_of({"managedseedset": ("managedseedset",)})
"""`managedseedset NAME`"""

explained = objects_of(
    {
        "shoot": ("shoot",),
        "seed": ("seed",),
        "placement": PLACEMENT_KINDS,
        **{kind: (kind,) for kind in PLACEMENT_KINDS},
    },
    bare="shoot",
)
"""Arguments of `explain`."""


def namespaces(ctx: Any, incomplete: str) -> list[str]:
    """Namespaces of the Projects; of a person's own where they may not list all."""
    return sorted({name for name in _while_one_waits(ctx, _namespaces) if name and name.startswith(incomplete)})


def seeds(ctx: Any, incomplete: str) -> list[str]:
    """Names of seeds."""
    return list(names(ctx, "seed", incomplete))


def shoot_names(ctx: Any, incomplete: str) -> list[str]:
    """Names of shoots."""
    return list(names(ctx, "shoot", incomplete))


def names(ctx: Any, word: str, incomplete: str) -> Sequence[str]:
    """Names of objects of a kind, in the namespace that stands in the line already."""
    try:
        spec = by_qualified_word(word)
    except Unsupported:
        return []
    namespace = ctx.params.get("namespace")
    tail = f"{spec.singular}.{namespace}" if namespace and spec.namespaced else spec.singular
    return _while_one_waits(ctx, lambda api: _names(api, tail, incomplete))


async def _namespaces(api: "ApiClient") -> Sequence[str]:
    if api.user and (own := as_mapping((await api.call("readable")).get("namespaces"))):
        return list(own)
    found = await api.items_if_readable("project") or ()
    return [str(as_mapping(project.get("spec")).get("namespace") or "") for project in found]


async def _names(api: "ApiClient", tail: str, prefix: str) -> Sequence[str]:
    """Names that begin so; those of kinds that are on the bus are read from lists."""
    body = json.dumps({"prefix": prefix}).encode()
    response = await api.request(f"names.{tail}", body)
    if response.ok:
        return cast("dict[str, list[str]]", response.result)["names"]
    if response.error.get("code") != Unsupported.code:
        return ()
    found = {str(as_mapping(document.get("metadata")).get("name")) for document in await api.items(tail)}
    return sorted(name for name in found if name.startswith(prefix))


def _while_one_waits(ctx: Any, query: Callable[["ApiClient"], Awaitable[Sequence[Found]]]) -> Sequence[Found]:
    """Query the landscape for as long as one waits for a Tab; () without a landscape or a response."""
    from gardenbus.cli.client.api import connected  # noqa: PLC0415  kinds are offered at once
    from gardenbus.cli.client.targets import find_landscape  # noqa: PLC0415  kinds are offered at once

    async def call() -> Sequence[Found]:
        seconds = float(os.environ.get("GARDENBUS_COMPLETION_SECONDS") or DEFAULT_SECONDS)
        async with asyncio.timeout(seconds), connected(where) as api:
            return await query(api)

    given = ctx.params
    with contextlib.suppress(GardenbusError, OSError, TimeoutError, ValueError):
        where = find_landscape(given.get("directory"), given.get("nats_url"), given.get("prefix"))
        return event_loop.run(call())
    return ()
