"""OpenIDConnectPreset and ClusterOpenIDConnectPreset: a new shoot without authentication gets that of a preset.

Facts: the presets (and the Project, whose labels a cluster-scoped one may select). Of those whose selectors match, the
one with the highest weight counts, then the last by name; a preset of the namespace comes before any of the landscape.
They are read without a guard: a preset acts once, on new shoots. Source: Gardener's `plugin/pkg/shoot/oidc` before
v1.142, which dropped it; its last versions did so for shoots below Kubernetes 1.32 alone, this one for all.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change, Mutate, Queries
from gardenbus.apiserver.domain.related_objects import KindQuery, ProjectQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of, namespace_of
from gardenbus.common.api.selectors import parse_selector

_OF_NAMESPACE, _OF_LANDSCAPE = "openidconnectpreset", "clusteropenidconnectpreset"


def _queries(kind: str) -> Queries:
    def find(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
        if old is not None or _has_configuration(shoot):
            return ()
        query = KindQuery(kind)
        return (query, ProjectQuery(namespace_of(shoot))) if kind == _OF_LANDSCAPE else (query,)

    return find


def _mutate(kind: str) -> Mutate:
    def complete(shoot: Document, change: Change, related: RelatedObjects) -> Document:
        listed = related.all_of.get(kind, ())
        if not listed or change.old is not None or not section(shoot, "spec") or _has_configuration(shoot):
            return shoot
        presets = [preset for preset in listed if _is_for(preset, shoot, related)]
        best = max(presets, key=lambda preset: (_weight(preset), name_of(preset)), default=None)
        return shoot if best is None else _with_preset(shoot, section(best, "spec"))

    return complete


def _is_for(preset: Document, shoot: Document, related: RelatedObjects) -> bool:
    spec = section(preset, "spec")
    if preset.get("kind") == "OpenIDConnectPreset":
        return namespace_of(preset) == namespace_of(shoot) and _selects(spec.get("shootSelector"), shoot)
    project = related.projects.get(namespace_of(shoot))
    if project is None or not _selects(spec.get("projectSelector"), project):
        return False
    return _selects(spec.get("shootSelector"), shoot)


def _selects(selector: object, document: Document) -> bool:
    """True when a selector matches; none, as in Kubernetes, matches nothing, and an empty one everything."""
    if not isinstance(selector, dict):
        return False
    try:
        return parse_selector(selector).matches(section(document, "metadata", "labels"))  # pyright: ignore[reportUnknownArgumentType]  any mapping
    except ValueError:
        return False


def _weight(preset: Document) -> int:
    weight = section(preset, "spec").get("weight")
    return weight if isinstance(weight, int) else 0


def _has_configuration(shoot: Document) -> bool:
    server = section(shoot, "spec", "kubernetes", "kubeAPIServer")
    return any(server.get(field) is not None for field in ("oidcConfig", "structuredAuthentication"))


def _with_preset(shoot: Document, preset: Document) -> Document:
    configuration = {name: value for name, value in section(preset, "server").items() if value is not None}
    if client := section(preset, "client"):
        configuration["clientAuthentication"] = client
    spec = section(shoot, "spec")
    kubernetes = section(spec, "kubernetes")
    server = {**section(kubernetes, "kubeAPIServer"), "oidcConfig": configuration}
    return {**shoot, "spec": {**spec, "kubernetes": {**kubernetes, "kubeAPIServer": server}}}


PLUGIN = AdmissionPlugin(
    name="OpenIDConnectPreset",
    acts="gives a new shoot the OpenID Connect of the heaviest preset of its namespace that selects it",
    rules=(AdmissionRule(("Shoot",), queries=_queries(_OF_NAMESPACE), mutate=_mutate(_OF_NAMESPACE)),),
)

CLUSTER_PLUGIN = AdmissionPlugin(
    name="ClusterOpenIDConnectPreset",
    acts="gives a new shoot the OpenID Connect of the heaviest preset of the landscape that selects it and its project",
    rules=(AdmissionRule(("Shoot",), queries=_queries(_OF_LANDSCAPE), mutate=_mutate(_OF_LANDSCAPE)),),
)
