"""Rules for changes of a seed with shoots on it, whether its Seed or its ManagedSeed is changed.

Source: Gardener's admission plugins SeedValidator and ManagedSeed.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from gardenbus.apiserver.domain.related_objects import RelatedQuery, ShootsOnSeedQuery
from gardenbus.common.api.document import Document, section
from gardenbus.common.errors import FieldProblem

MOVE = "move them to another seed first, with gardenbus drain"
_NAMED = 3


def shoots_on_seed_queries(name: str, spec: Document, before: Document) -> Sequence[RelatedQuery]:
    """Query of the shoots on a seed, only when something is removed that they may need."""
    return (ShootsOnSeedQuery(name),) if any(_removals(spec, before, ())) else ()


def removals_in_use(path: str, spec: Document, before: Document, shoots: Sequence[Document]) -> Sequence[FieldProblem]:
    """Problems of a change of a seed's spec (at `path`) for the shoots on it."""
    if not shoots:
        return ()
    return [FieldProblem(f"{path}.{field}", message) for field, message in _removals(spec, before, shoots)]


def zones_of(spec: Document) -> Sequence[str]:
    """The zones of a seed's spec."""
    zones = section(spec, "provider").get("zones")
    return [zone for zone in cast("list[Any]", zones) if isinstance(zone, str)] if isinstance(zones, list) else []


def _removals(spec: Document, before: Document, shoots: Sequence[Document]) -> Iterator[tuple[str, str]]:
    """Parts that are removed; without shoots everything counts as used."""
    kept = zones_of(spec)
    if gone := [zone for zone in zones_of(before) if zone not in kept]:
        yield "provider.zones", f"{', '.join(gone)} cannot be taken away while {_count(shoots)} on the seed: {MOVE}"
    internal, internal_before = (section(one, "dns", "internal").get("domain") for one in (spec, before))
    if internal_before and internal != internal_before:
        yield (
            "dns.internal.domain",
            f"{internal_before} stays while {_count(shoots)} on the seed, whose names lie below it: {MOVE}",
        )
    defaults = _default_domains(spec)
    for domain in _default_domains(before):
        users = [shoot for shoot in shoots if _uses(shoot, domain)]
        if domain not in defaults and (users or not shoots):
            yield "dns.defaults", f"{domain} stays while shoots use it ({_names(users)}): {MOVE}"


def _default_domains(spec: Document) -> Sequence[str]:
    defaults = section(spec, "dns").get("defaults")
    listed = cast("list[Any]", defaults) if isinstance(defaults, list) else []
    domains = [section({"default": default}, "default").get("domain") for default in listed]
    return [domain for domain in domains if isinstance(domain, str)]


def _uses(shoot: Document, domain: str) -> bool:
    own = section(shoot, "spec", "dns").get("domain")
    return isinstance(own, str) and own.endswith(f".{domain}")


def _count(shoots: Sequence[Document]) -> str:
    return "one shoot is" if len(shoots) == 1 else f"{len(shoots)} shoots are"


def _names(shoots: Sequence[Document]) -> str:
    names = [f"{shoot['metadata'].get('namespace')}/{shoot['metadata'].get('name')}" for shoot in shoots]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(sorted(names)[:_NAMED]) + more
