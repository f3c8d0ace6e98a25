"""ExtensionLabels: labels `<kind>.extensions.gardener.cloud/<type>: "true"` of the extensions that an object uses.

Facts: all ControllerRegistrations, which may enable extensions everywhere; the parent of a NamespacedCloudProfile; the
bucket of a BackupEntry. Read without a guard: the labels are made anew with each change of the object. Labels with
these prefixes are the system's. Source: `plugin/pkg/global/extensionlabels`.
"""

from collections.abc import Iterator, Sequence

from gardenbus.apiserver.domain.cloud_profiles import parent_key
from gardenbus.apiserver.domain.extensions import REGISTRATION
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.related_objects import KindQuery, ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.backup_references import bucket_of
from gardenbus.common.api.garden.credentials_bindings import provider_types
from gardenbus.common.api.garden.extensions import cluster_type, enabled_types
from gardenbus.common.api.keys import ObjectKey

_SUFFIX = ".extensions.gardener.cloud/"
_OWN = tuple(
    f"{kind}{_SUFFIX}"
    for kind in (
        "extensions",
        "provider",
        "dnsrecord",
        "networking",
        "operatingsystemconfig",
        "containerruntime",
        "selfhostedshootexposure",
    )
)
_LONGEST_NAME = 63
_KINDS = (
    *("Seed", "SecretBinding", "CredentialsBinding", "WorkloadIdentity", "Shoot", "CloudProfile"),
    *("NamespacedCloudProfile", "BackupBucket", "BackupEntry"),
)


def _queries(document: Document, old: Document | None) -> Sequence[RelatedQuery]:
    if old is not None and section(document, "spec") == section(old, "spec"):
        return ()
    match document.get("kind"):
        case "Seed" | "Shoot":
            return (KindQuery(REGISTRATION),)
        case _:
            above = _above(document)
            return (ObjectQuery(above),) if above is not None else ()


def _mutate(document: Document, change: Change, related: RelatedObjects) -> Document:
    if change.old is not None and section(document, "spec") == section(change.old, "spec") and _has_spec(document):
        return _labelled(document, own_labels(change.old))
    return _labelled(document, {f"{kind}{_SUFFIX}{name}": "true" for kind, name in _types(document, related)})


def _has_spec(document: Document) -> bool:
    return document.get("spec") is not None


def own_labels(document: Document) -> Document:
    """The labels of an object that this plug-in sets and takes off."""
    labels = section(document, "metadata", "labels")
    return {name: value for name, value in labels.items() if name.startswith(_OWN)}


def _labelled(document: Document, own: Document) -> Document:
    """The document with these labels of ours and no others; the same one where nothing changes."""
    metadata = section(document, "metadata")
    if not metadata or own == own_labels(document):
        return document
    others = {name: value for name, value in section(metadata, "labels").items() if not name.startswith(_OWN)}
    return {**document, "metadata": {**metadata, "labels": {**others, **own}}}


def _types(document: Document, related: RelatedObjects) -> Iterator[tuple[str, str]]:
    for kind, name in _stated(document, related):
        if isinstance(name, str) and name.isprintable() and 0 < len(name) <= _LONGEST_NAME and "/" not in name:
            yield kind, name


def _stated(document: Document, related: RelatedObjects) -> Iterator[tuple[str, object]]:
    spec, registrations, kind = section(document, "spec"), related.all_of.get(REGISTRATION, ()), document.get("kind")
    if kind in ("Shoot", "Seed"):
        types = enabled_types(spec, registrations, cluster_type(kind, spec))
        yield from (("extensions", name) for name in sorted(types))
    match kind:
        case "Shoot":
            yield from _of_shoot(spec)
        case "Seed":
            yield "provider", section(spec, "provider").get("type")
            yield "provider", section(spec, "backup").get("provider")
            yield "dnsrecord", section(spec, "dns", "provider").get("type")
        case "SecretBinding" | "CredentialsBinding":
            yield from (("provider", name) for name in provider_types(document))
        case "WorkloadIdentity":
            yield "provider", section(spec, "targetSystem").get("type")
        case "CloudProfile":
            yield "provider", spec.get("type")
        case "BackupBucket":
            yield "provider", section(spec, "provider").get("type")
        case _:
            above = _above(document)
            yield from _stated(related.objects.get(above, {}), related) if above is not None else ()


def _of_shoot(spec: Document) -> Iterator[tuple[str, object]]:
    provider = section(spec, "provider")
    yield "provider", provider.get("type")
    yield "networking", section(spec, "networking").get("type")
    for worker in mappings(provider.get("workers")):
        yield "operatingsystemconfig", section(worker, "machine", "image").get("name")
        if worker.get("controlPlane"):
            yield "selfhostedshootexposure", section(worker, "controlPlane", "exposure", "extension").get("type")
        for runtime in mappings(section(worker, "cri").get("containerRuntimes")):
            yield "containerruntime", runtime.get("type")
    for dns in mappings(section(spec, "dns").get("providers")):
        if dns.get("type") != "unmanaged":
            yield "dnsrecord", dns.get("type")


def _above(document: Document) -> ObjectKey | None:
    """The object that says of which provider this one is."""
    if document.get("kind") == "NamespacedCloudProfile":
        return parent_key(document)
    return bucket_of(document)


PLUGIN = AdmissionPlugin(
    name="ExtensionLabels",
    acts='keeps labels `<kind>.extensions.gardener.cloud/<type>: "true"` of the extensions that an object uses',
    rules=(AdmissionRule(_KINDS, queries=_queries, mutate=_mutate),),
)
