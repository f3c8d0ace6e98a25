"""Plants: clusters that somebody else made, of which a Secret has the kubeconfig."""

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import namespace_of
from gardenbus.common.api.keys import ObjectKey


def secret_of(plant: Document) -> ObjectKey:
    """The Secret with the kubeconfig: of the Plant's own namespace."""
    return ObjectKey("secret", namespace_of(plant), str(section(plant, "spec", "secretRef").get("name") or ""))
