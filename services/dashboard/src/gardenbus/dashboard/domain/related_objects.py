"""Other objects that a manifest refers to, as links between pages. Pure."""

from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings


class Related(NamedTuple):
    """Another object, and its role."""

    role: str
    kind: str
    namespace: str
    name: str


def related_to(document: Document) -> list[Related]:
    """Return the objects that a manifest refers to, each once."""
    metadata, spec, status = section(document, "metadata"), section(document, "spec"), section(document, "status")
    namespace = str(metadata.get("namespace") or "")
    found = [
        Related("owner", str(owner.get("kind", "")).lower(), namespace, str(owner.get("name", "")))
        for owner in mappings(metadata.get("ownerReferences"))
    ]
    match str(document.get("kind", "")).lower():
        case "shoot":
            found += _of_shoot(spec, status, namespace)
        case "managedseed":
            shoot = str(section(spec, "shoot").get("name") or "")
            found += [Related("shoot", "shoot", namespace, shoot), Related("seed", "seed", "", str(metadata["name"]))]
        case "managedseedset":
            pending = str(section(status, "pendingReplica").get("name") or "")
            found.append(Related("replica in the making", "shoot", namespace, pending))
        case "seedautoscaler":
            target = str(section(spec, "scaleTargetRef").get("name") or "")
            found.append(Related("scales", "managedseedset", namespace, target))
        case "clusterresourcebinding" | "resourcebinding":
            found.append(Related("on", "membercluster", "", str(spec.get("targetCluster") or "")))
        case _:
            pass
    return list(dict.fromkeys(each for each in found if each.name and each.kind))


def _of_shoot(spec: Document, status: Document, namespace: str) -> list[Related]:
    profile = section(spec, "cloudProfile")
    kind = str(profile.get("kind") or "CloudProfile").lower()
    name = str(profile.get("name") or spec.get("cloudProfileName") or "")
    seed, actual = str(spec.get("seedName") or ""), str(status.get("seedName") or "")
    return [
        Related("seed", "seed", "", seed),
        Related("still on", "seed", "", actual if actual != seed else ""),
        Related("profile", kind, namespace if kind == "namespacedcloudprofile" else "", name),
    ]
