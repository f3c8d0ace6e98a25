"""ShootDNS: a shoot that names its seed gets domain and primary provider, and no provider without a function.

Facts: the seed, and the Project where the change places the shoot. Source: `plugin/pkg/shoot/dns`. Default domains are
those of the seed alone (`spec.dns.defaults`), not of Secrets; a seed without any takes shoots without domain, which
then have none. A shoot that a scheduler places gets domain and primary provider with the bind; providers that have no
function then are warned of before. Whether a domain below a default domain has its form is checked with the seed.
"""

from collections.abc import Iterator, Sequence

from gardenbus.apiserver.domain.placed_shoots import placed_now_queries, seed_key
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, mappings, name_of, namespace_of
from gardenbus.common.api.garden.binding_defaults import is_below, with_seed_dns
from gardenbus.common.api.garden.seeds import Seed
from gardenbus.common.errors import FieldProblem, InvalidResource

_IDENTITY = ("type", "secretName", "credentialsRef")
_PRIMARY = RejectionMessage("must not be set, as {domain} is below a default domain of the seed, whose provider it has")
_FUNCTIONLESS = RejectionMessage(
    "is required of a provider that is not primary, as type and credentialsRef (or secretName) are"
)


def _queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    key = seed_key(shoot)
    if key is None or not section(old or {}, "spec").get("seedName"):
        return placed_now_queries(shoot, old)
    return (ObjectQuery(key),) if _is_checked(shoot, old) else ()


def _mutate(shoot: Document, change: Change, related: RelatedObjects) -> Document:
    shoot = _with_primary_of(shoot, change.old)
    key = seed_key(shoot)
    seed = related.objects.get(key) if key is not None else None
    was_placed = bool(section(change.old or {}, "spec").get("seedName"))
    if seed is None or (was_placed and not _is_checked(shoot, change.old)):
        return shoot
    project = None if was_placed else related.projects.get(namespace_of(shoot))
    try:
        return {**shoot, "spec": with_seed_dns(shoot, seed, None if project is None else name_of(project))}
    except InvalidResource:  # validation reports it
        return shoot


def _with_primary_of(shoot: Document, old: Document | None) -> Document:
    """A shoot whose manifest lost the mark of its primary provider, which admission had set, with it."""
    spec, providers = section(shoot, "spec"), _providers(shoot)
    primary = next((one for one in _providers(old or {}) if one.get("primary") is True), None)
    if primary is None or not providers or any(one.get("primary") is True for one in providers):
        return shoot
    same = [all(one.get(name) == primary.get(name) for name in _IDENTITY) for one in providers]
    if True not in same:
        return shoot
    position = same.index(True)
    marked = [{**one, "primary": True} if index == position else one for index, one in enumerate(providers)]
    return {**shoot, "spec": {**spec, "dns": {**section(spec, "dns"), "providers": marked}}}


def _warn(shoot: Document, change: Change, _related: RelatedObjects) -> Sequence[str]:
    if seed_key(shoot) is not None or not _is_checked(shoot, change.old):
        return ()
    has_primary = any(one.get("primary") is True for one in _providers(shoot))
    problems = list(_functionless(shoot))[0 if has_primary else 1 :]  # the first one will be primary
    return [f"{problem.field}: {problem.message}" for problem in problems]


def _admit(shoot: Document, change: Change, related: RelatedObjects) -> None:
    key = seed_key(shoot)
    if key is None or is_deleting(shoot) or not _is_checked(shoot, change.old):
        return
    seed = related.objects.get(key)
    if problems := [*_primary_problems(shoot, seed), *_functionless(shoot)]:
        raise invalid(problems)


def _primary_problems(shoot: Document, seed: Document | None) -> Iterator[FieldProblem]:
    domain = section(shoot, "spec", "dns").get("domain")
    if seed is None or not is_below(domain, Seed.from_document(seed)):
        return
    for index, provider in enumerate(_providers(shoot)):
        if provider.get("primary") is True:
            yield FieldProblem(f"spec.dns.providers[{index}].primary", _PRIMARY(domain=domain))


def _functionless(shoot: Document) -> Iterator[FieldProblem]:
    """Providers that are not primary, and with which nothing could be done."""
    for index, provider in enumerate(_providers(shoot)):
        absent = "" if provider.get("type") else "type"
        if not provider.get("secretName") and not provider.get("credentialsRef"):
            absent = absent or "credentialsRef"
        if provider.get("primary") is not True and absent:
            yield FieldProblem(f"spec.dns.providers[{index}].{absent}", _FUNCTIONLESS())


def _is_checked(shoot: Document, old: Document | None) -> bool:
    if not _providers(shoot):
        return False
    before = section(old or {}, "spec")
    is_placed_now = seed_key(shoot) is not None and not before.get("seedName")
    return old is None or is_placed_now or section(shoot, "spec").get("dns") != before.get("dns")


def _providers(shoot: Document) -> Sequence[Document]:
    return mappings(section(shoot, "spec", "dns").get("providers"))


PLUGIN = AdmissionPlugin(
    name="ShootDNS",
    acts="gives a shoot a domain below the default domain of its seed, and a primary provider; rejects idle providers",
    rejections=(_PRIMARY, _FUNCTIONLESS),
    rules=(AdmissionRule(("Shoot",), queries=_queries, mutate=_mutate, warn=_warn, admit=_admit),),
)
