"""What of a seed must stay while shoots are on it, whether its Seed or its ManagedSeed is changed.

Source: Gardener's admission plugins SeedValidator and ManagedSeed.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from gardenbus.apiserver.decide.facts import FactQuery, GuestsQuery
from gardenbus.common.errors import FieldProblem
from gardenbus.common.resources.document import Document, section

MOVE = "move them to another seed first, with gardenbus drain"
_NAMED = 3


def guests_needed(name: str, spec: Document, before: Document) -> Sequence[FactQuery]:
    """Who is on the seed, asked only when something goes that its shoots may need."""
    return (GuestsQuery(name),) if any(_losses(spec, before, ())) else ()


def losses_of_guests(path: str, spec: Document, before: Document, guests: Sequence[Document]) -> Sequence[FieldProblem]:
    """What a change of a seed's spec (at `path`) takes from the shoots on it."""
    if not guests:
        return ()
    return [FieldProblem(f"{path}.{field}", message) for field, message in _losses(spec, before, guests)]


def zones_of(spec: Document) -> Sequence[str]:
    """The zones of a seed's spec."""
    zones = section(spec, "provider").get("zones")
    return [zone for zone in cast("list[Any]", zones) if isinstance(zone, str)] if isinstance(zones, list) else []


def _losses(spec: Document, before: Document, guests: Sequence[Document]) -> Iterator[tuple[str, str]]:
    """What goes; without guests everything that goes counts as used."""
    kept = zones_of(spec)
    if gone := [zone for zone in zones_of(before) if zone not in kept]:
        yield "provider.zones", f"{', '.join(gone)} cannot be taken away while {_count(guests)} on the seed: {MOVE}"
    internal, internal_before = (section(one, "dns", "internal").get("domain") for one in (spec, before))
    if internal_before and internal != internal_before:
        yield (
            "dns.internal.domain",
            f"{internal_before} stays while {_count(guests)} on the seed, whose names lie below it: {MOVE}",
        )
    defaults = _default_domains(spec)
    for domain in _default_domains(before):
        users = [guest for guest in guests if _uses(guest, domain)]
        if domain not in defaults and (users or not guests):
            yield "dns.defaults", f"{domain} stays while shoots use it ({_names(users)}): {MOVE}"


def _default_domains(spec: Document) -> Sequence[str]:
    defaults = section(spec, "dns").get("defaults")
    listed = cast("list[Any]", defaults) if isinstance(defaults, list) else []
    domains = [section({"default": default}, "default").get("domain") for default in listed]
    return [domain for domain in domains if isinstance(domain, str)]


def _uses(shoot: Document, domain: str) -> bool:
    own = section(shoot, "spec", "dns").get("domain")
    return isinstance(own, str) and own.endswith(f".{domain}")


def _count(guests: Sequence[Document]) -> str:
    return "one shoot is" if len(guests) == 1 else f"{len(guests)} shoots are"


def _names(shoots: Sequence[Document]) -> str:
    names = [f"{shoot['metadata'].get('namespace')}/{shoot['metadata'].get('name')}" for shoot in shoots]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(sorted(names)[:_NAMED]) + more
