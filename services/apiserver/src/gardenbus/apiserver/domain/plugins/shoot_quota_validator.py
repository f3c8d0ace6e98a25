"""ShootQuotaValidator: shoots stay within the Quotas of their bindings, and live no longer than those allow.

Facts: the bindings, their Quotas, what all shoots that count for one want, and the profiles of those. The limits are
checked in the write itself, on the sums as they are then: of two shoots that fit one at a time only one is created. A
write is checked that wants more of something than before; Gardener also rejects one that takes from a pool while the
Quota is exceeded. Source: `plugin/pkg/shoot/quotavalidator`.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change, of_stored
from gardenbus.apiserver.domain.rejection_messages import CHANGED_MEANWHILE, RejectionMessage, unchanged
from gardenbus.apiserver.domain.related_objects import ObjectQuery, QuotasQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, key_of_document, namespace_of
from gardenbus.common.api.garden.profile_parts import profile_key, profile_spec_of
from gardenbus.common.api.garden.quotas import (
    EXPIRATION_ANNOTATION,
    QuotaLimits,
    bindings_of,
    demand_of,
    limits_of,
    metrics_of_unit,
    profile_of_unit,
    quota_keys,
    shortest_lifetime,
)
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.shown_values import shown
from gardenbus.common.errors import FieldProblem, Forbidden
from gardenbus.common.ports.store import DemandLimits, WritePrecondition

_EXPIRATION = f"metadata.annotations[{EXPIRATION_ANNOTATION}]"
_MISSING = RejectionMessage("{binding} names {quota}, which does not exist: apply it first, or take it out")
_TOO_LONG = RejectionMessage(
    f"{_EXPIRATION}: requested shoot expiration time is too long. Can only be extended by {{days}} day(s)"
)
_NO_INSTANT = RejectionMessage("must be an instant as 2026-12-31T00:00:00Z, not {stated}")
_EXCEEDED = RejectionMessage("{shoot}: quota limits exceeded: {quota} allows {allowed}. Unable to allocate further")


def _queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    bindings = tuple(bindings_of(shoot))
    if not bindings or not (_wants_more(shoot, old) or _is_extended(shoot, old)):
        return ()
    profile = profile_key(section(shoot, "spec"), namespace_of(shoot))
    return (QuotasQuery(bindings), *((ObjectQuery(profile),) if profile is not None else ()))


def _admit(shoot: Document, change: Change, related: RelatedObjects) -> None:
    bindings = bindings_of(shoot)
    if not bindings or not (_wants_more(shoot, change.old) or _is_extended(shoot, change.old)):
        return
    named = tuple(_quota_keys(bindings, related))
    if missing := [key for key in named if key not in related.objects]:
        raise Forbidden(_MISSING(binding=bindings[0], quota=missing[0]))
    lifetime = shortest_lifetime(_limits(bindings, related)) if named else None
    if lifetime is not None and _is_extended(shoot, change.old) and _expiration(shoot) > change.now + lifetime:
        raise Forbidden(_TOO_LONG(days=lifetime.days))


def _guards(shoot: Document, old: Document | None, related: RelatedObjects) -> Sequence[WritePrecondition]:
    bindings = bindings_of(shoot)
    if not bindings or not _wants_more(shoot, old):
        return ()
    limited = [quota for quota in _limits(bindings, related) if quota.metrics]
    if not limited:
        return ()
    own = demand_of(section(shoot, "spec"), namespace_of(shoot))
    read = [key for key in (*bindings, *(quota.key for quota in limited)) if key in related.objects]
    return (*(_unchanged(key, related) for key in read), *(_within(shoot, quota, own, related) for quota in limited))


def _within(shoot: Document, quota: QuotaLimits, own: Mapping[str, int], related: RelatedObjects) -> WritePrecondition:
    units = {*own, *related.demands.get(quota.key, {})}
    given = section(related.objects[quota.key], "spec", "metrics")
    allowed = ", ".join(f"{metric} {given[metric]}" for metric in quota.metrics)
    return WritePrecondition(
        "demand",
        quota.key.stored,
        _EXCEEDED(shoot=key_of_document(shoot), quota=quota.key, allowed=allowed),
        limits=DemandLimits(
            most=quota.metrics,
            amounts={unit: _metrics_of(unit, related) for unit in sorted(units)},
            namespace=namespace_of(shoot) if quota.is_of_project else "",
        ),
    )


def _metrics_of(unit: str, related: RelatedObjects) -> Mapping[str, int]:
    key = profile_of_unit(unit)
    profile = related.objects.get(key) if key is not None else None
    return metrics_of_unit(unit, profile_spec_of(profile) or {})


def _unchanged(key: ObjectKey, related: RelatedObjects) -> WritePrecondition:
    version = section(related.objects[key], "metadata").get("resourceVersion")
    return unchanged(key, int(version or 0))


def _quota_keys(bindings: Sequence[ObjectKey], related: RelatedObjects) -> Iterator[ObjectKey]:
    for binding in bindings:
        yield from quota_keys(related.objects.get(binding, {}))


def _limits(bindings: Sequence[ObjectKey], related: RelatedObjects) -> Sequence[QuotaLimits]:
    """The Quotas that count, each once."""
    keys = dict.fromkeys(_quota_keys(bindings, related))
    return [limits_of(related.objects[key]) for key in keys if key in related.objects]


def _wants_more(shoot: Document, old: Document | None) -> bool:
    """True for a new shoot, one with other bindings, and one that wants more of something."""
    if old is None:
        return True
    if is_deleting(old):
        return False
    spec, before, namespace = section(shoot, "spec"), section(old, "spec"), namespace_of(shoot)
    if spec == before:
        return False
    if bindings_of(shoot) != bindings_of(old):
        return True
    wanted = demand_of(before, namespace)
    return any(count > wanted.get(unit, 0) for unit, count in demand_of(spec, namespace).items())


def _is_extended(shoot: Document, old: Document | None) -> bool:
    """True for a shoot whose expiration is another than it was, and that is not being deleted."""
    stated = section(shoot, "metadata", "annotations").get(EXPIRATION_ANNOTATION)
    before = section(old or {}, "metadata", "annotations").get(EXPIRATION_ANNOTATION)
    return bool(stated) and stated != before and not is_deleting(shoot)


def _expiration(shoot: Document) -> datetime:
    stated = section(shoot, "metadata", "annotations").get(EXPIRATION_ANNOTATION)
    try:
        expiration = datetime.fromisoformat(str(stated))
    except ValueError:
        expiration = None
    if expiration is None or expiration.tzinfo is None:
        raise invalid([FieldProblem(_EXPIRATION, _NO_INSTANT(stated=shown(stated)))])
    return expiration


PLUGIN = AdmissionPlugin(
    name="ShootQuotaValidator",
    acts="rejects a shoot beyond the Quotas of its bindings, and an expiration later than those allow",
    rejections=(_MISSING, _TOO_LONG, _NO_INSTANT, _EXCEEDED, CHANGED_MEANWHILE),
    rules=(AdmissionRule(("Shoot",), queries=_queries, admit=_admit, guards=of_stored(_guards)),),
)
