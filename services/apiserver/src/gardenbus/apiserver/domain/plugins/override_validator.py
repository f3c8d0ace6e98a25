"""OverrideValidator: an object is changed by at most one override of each kind, and there are not too many of them.

Facts: all overrides of the kind. Of two that are created in the same instant for one object the store takes one: to
override it is a claim (`IndexKeys.claims`). Source: KubeFleet's webhooks `clusterresourceoverride` and
`resourceoverride`. The limit of ResourceOverrides is one of each namespace here, so that no tenant uses up another's.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import KindQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.api.fleet.overrides import selector_claims, selectors_of
from gardenbus.common.errors import Forbidden

MOST_OVERRIDES = 100
"""ClusterResourceOverrides of a landscape, and ResourceOverrides of a namespace."""
_TOO_MANY = RejectionMessage(f"kind: {{place}} has {MOST_OVERRIDES} {{kind}}s already: put several rules into one")
_CHANGED = RejectionMessage(
    "spec.{field}[{index}]: {object} is changed by the {kind} {holder} already: add a rule there"
)


def _queries(override: Document, old: Document | None) -> Sequence[RelatedQuery]:
    return (KindQuery(str(override["kind"]).lower()),) if _is_checked(override, old) else ()


def _admit(override: Document, change: Change, related: RelatedObjects) -> None:
    if not _is_checked(override, change.old):
        return
    kind, namespace = str(override["kind"]), _namespace_of(override)
    others = [
        each
        for each in related.all_of.get(kind.lower(), ())
        if _namespace_of(each) == namespace and name_of(each) != name_of(override)
    ]
    if change.old is None and len(others) >= MOST_OVERRIDES:
        place = f"the namespace {namespace}" if namespace else "the landscape"
        raise Forbidden(_TOO_MANY(place=place, kind=kind))
    taken = {claim: name_of(each) for each in others for claim in selector_claims(each)}
    for index, selector in enumerate(selectors_of(override)):
        claim = selector_claims({**override, "spec": {_field(kind): [selector]}})
        if holder := taken.get(claim[0] if claim else ""):
            changed = f"{selector.get('kind')} {selector.get('name')}"
            raise Forbidden(_CHANGED(field=_field(kind), index=index, object=changed, kind=kind, holder=holder))


def _is_checked(override: Document, old: Document | None) -> bool:
    return old is None or selectors_of(override) != selectors_of(old)


def _field(kind: str) -> str:
    return "resourceSelectors" if kind == "ResourceOverride" else "clusterResourceSelectors"


def _namespace_of(document: Document) -> str:
    return str(section(document, "metadata").get("namespace") or "")


PLUGIN = AdmissionPlugin(
    name="OverrideValidator",
    acts="rejects a second override of the same kind for an object, and more than a hundred overrides",
    rejections=(_TOO_MANY, _CHANGED),
    rules=(AdmissionRule(("ClusterResourceOverride", "ResourceOverride"), queries=_queries, admit=_admit),),
)
