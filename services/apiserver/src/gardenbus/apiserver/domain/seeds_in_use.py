"""Rules for changes of a seed with shoots on it, whether its Seed or its ManagedSeed is changed.

Source: Gardener's admission plugins SeedValidator and ManagedSeed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import RelatedQuery, ShootsOnSeedQuery
from gardenbus.common.api.document import Document, section
from gardenbus.common.errors import FieldProblem

MOVE = "move them to another seed first, with gardenbus drain"
_NAMED = 3
ZONES_IN_USE = RejectionMessage(f"{{zones}} cannot be taken away while {{shoots}} on the seed: {MOVE}")
DOMAIN_IN_USE = RejectionMessage(f"{{domain}} stays while {{shoots}} on the seed, whose names lie below it: {MOVE}")
DEFAULT_IN_USE = RejectionMessage(f"{{domain}} stays while shoots use it ({{shoots}}): {MOVE}")
REMOVALS = (ZONES_IN_USE, DOMAIN_IN_USE, DEFAULT_IN_USE)


def shoots_on_seed_queries(name: str, spec: Document, before: Document) -> Sequence[RelatedQuery]:
    """Query of the shoots on a seed, only when something is removed that they may need."""
    return (ShootsOnSeedQuery(name),) if any(_removals(spec, before, ())) else ()


def removals_in_use(path: str, spec: Document, before: Document, shoots: Sequence[Document]) -> Sequence[FieldProblem]:
    """Problems of a change of a seed's spec (at `path`) for the shoots on it."""
    if not shoots:
        return ()
    return [*_removals(spec, before, shoots, path)]


def zones_of(spec: Document) -> Sequence[str]:
    """The zones of a seed's spec."""
    zones = section(spec, "provider").get("zones")
    return [zone for zone in cast("list[Any]", zones) if isinstance(zone, str)] if isinstance(zones, list) else []


def _removals(
    spec: Document, before: Document, shoots: Sequence[Document], path: str = "spec"
) -> Iterator[FieldProblem]:
    """Parts that are removed; without shoots everything counts as used."""
    kept = set(zones_of(spec))
    if gone := [zone for zone in zones_of(before) if zone not in kept]:
        yield FieldProblem(f"{path}.provider.zones", ZONES_IN_USE(zones=", ".join(gone), shoots=_count(shoots)))
    internal, internal_before = (section(one, "dns", "internal").get("domain") for one in (spec, before))
    if internal_before and internal != internal_before:
        yield FieldProblem(f"{path}.dns.internal.domain", DOMAIN_IN_USE(domain=internal_before, shoots=_count(shoots)))
    defaults = set(_default_domains(spec))
    removed = [domain for domain in _default_domains(before) if domain not in defaults]
    using = _by_parent_domain(shoots if removed else ())
    for domain in removed:
        users = using.get(domain, [])
        if users or not shoots:
            yield FieldProblem(f"{path}.dns.defaults", DEFAULT_IN_USE(domain=domain, shoots=_names(users)))


def _default_domains(spec: Document) -> Sequence[str]:
    defaults = section(spec, "dns").get("defaults")
    listed = cast("list[Any]", defaults) if isinstance(defaults, list) else []
    domains = [section({"default": default}, "default").get("domain") for default in listed]
    return [domain for domain in domains if isinstance(domain, str)]


def _by_parent_domain(shoots: Sequence[Document]) -> Mapping[str, list[Document]]:
    """The shoots by each domain that theirs is below."""
    found: dict[str, list[Document]] = {}
    for shoot in shoots:
        own = section(shoot, "spec", "dns").get("domain")
        parent = own.partition(".")[2] if isinstance(own, str) else ""
        while parent:
            found.setdefault(parent, []).append(shoot)
            parent = parent.partition(".")[2]
    return found


def _count(shoots: Sequence[Document]) -> str:
    return "one shoot is" if len(shoots) == 1 else f"{len(shoots)} shoots are"


def _names(shoots: Sequence[Document]) -> str:
    names = [f"{shoot['metadata'].get('namespace')}/{shoot['metadata'].get('name')}" for shoot in shoots]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(sorted(names)[:_NAMED]) + more
