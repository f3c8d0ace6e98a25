"""Finalizers and labels of what others refer to: profiles, exposure classes, quotas, bindings and credentials.

| object | is protected | by the finalizer |
|---|---|---|
| CloudProfile, NamespacedCloudProfile, ExposureClass, Quota, SecretBinding, CredentialsBinding | always | `gardener` |
| Secret, InternalSecret, WorkloadIdentity | while a binding refers to it | `gardener.cloud/gardener` |
| one of these in `garden` | while a BackupBucket refers to it | the same |

What a binding refers to says by labels of which kind the binding is, and credentials for which providers it is.
Source: Gardener's `pkg/controllermanager/controller`, packages `cloudprofile`, `exposureclass`, `quota`,
`secretbinding`, `credentialsbinding`, and `pkg/gardenlet/controller/backupbucket`.
"""

from collections.abc import Iterable, Sequence

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import EXTERNAL_FINALIZER, with_finalizer, without_finalizer
from gardenbus.common.api.garden.credentials_bindings import CREDENTIALS_KINDS, provider_types

PROVIDER_LABEL_PREFIX = "provider.shoot.gardener.cloud/"
REFERENCE_LABEL_PREFIX = "reference.gardener.cloud/"


def is_reference_label(label: str) -> bool:
    """True for labels that this service keeps on what bindings refer to."""
    return label.startswith((PROVIDER_LABEL_PREFIX, REFERENCE_LABEL_PREFIX))


def labelled(document: Document, bindings: Iterable[Document]) -> Document:
    """A document whose labels say which bindings refer to it; the same document where they do."""
    metadata = section(document, "metadata")
    labels = section(metadata, "labels")
    kept = {label: value for label, value in labels.items() if not is_reference_label(label)}
    wanted = {**kept, **_labels(str(document.get("kind")).lower(), bindings)}
    return document if wanted == labels else {**document, "metadata": {**metadata, "labels": wanted}}


def protected_credentials(document: Document, bindings: Sequence[Document]) -> Document:
    """Credentials as they should be while these bindings and buckets refer to them."""
    document = labelled(document, bindings)
    return with_finalizer(document, EXTERNAL_FINALIZER) if bindings else without_finalizer(document, EXTERNAL_FINALIZER)


def _labels(kind: str, bindings: Iterable[Document]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for binding in bindings:
        if binding.get("kind") == "BackupBucket":
            continue
        labels[f"{REFERENCE_LABEL_PREFIX}{str(binding.get('kind')).lower()}"] = "true"
        if kind in CREDENTIALS_KINDS:
            labels |= {f"{PROVIDER_LABEL_PREFIX}{name}": "true" for name in provider_types(binding)}
    return labels
