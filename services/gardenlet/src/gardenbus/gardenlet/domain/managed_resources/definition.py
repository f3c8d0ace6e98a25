"""CustomResourceDefinition of ManagedResources, for a seed whose Kubernetes API does not have it yet."""

from gardenbus.common.api.document import Document
from gardenbus.gardenlet.domain.managed_resources.names import GROUP, KIND

_TEXT: Document = {"type": "string"}
_FLAG: Document = {"type": "boolean"}
_TEXTS: Document = {"type": "object", "additionalProperties": _TEXT}


def _object(properties: Document, **more: object) -> Document:
    return {"type": "object", "properties": properties, **more}


def _list(entries: Document) -> Document:
    return {"type": "array", "items": entries}


_SPEC = _object(
    {
        "class": _TEXT,
        "secretRefs": _list(_object({"name": _TEXT})),
        "injectLabels": _TEXTS,
        "forceOverwriteLabels": _FLAG,
        "forceOverwriteAnnotations": _FLAG,
        "keepObjects": _FLAG,
        "equivalences": _list(_list(_object({"group": _TEXT, "kind": _TEXT}, required=["group", "kind"]))),
        "deletePersistentVolumeClaims": _FLAG,
    },
    required=["secretRefs"],
)
_REFERENCE_FIELDS = ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid")
_REFERENCE: Document = {**dict.fromkeys(_REFERENCE_FIELDS, _TEXT), "labels": _TEXTS, "annotations": _TEXTS}
_CONDITION_FIELDS = ("type", "status", "reason", "message", "lastTransitionTime", "lastUpdateTime")
_CONDITION = _object({**dict.fromkeys(_CONDITION_FIELDS, _TEXT), "codes": _list(_TEXT)})
_STATUS = _object(
    {
        "conditions": _list(_CONDITION),
        "observedGeneration": {"type": "integer", "format": "int64"},
        "resources": _list(_object(_REFERENCE)),
        "secretsDataChecksum": _TEXT,
    }
)


def _column(name: str, path: str, **more: str) -> Document:
    return {"name": name, "type": "string", "jsonPath": path, **more}


def _condition_column(name: str, kind: str) -> Document:
    return _column(name, f'.status.conditions[?(@.type=="{kind}")].status', description=f"Status of {kind}")


DEFINITION: Document = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"managedresources.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {
            "kind": KIND,
            "listKind": f"{KIND}List",
            "plural": "managedresources",
            "singular": "managedresource",
            "shortNames": ["mr"],
        },
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    _column("Class", ".spec.class"),
                    _condition_column("Applied", "ResourcesApplied"),
                    _condition_column("Healthy", "ResourcesHealthy"),
                    _condition_column("Progressing", "ResourcesProgressing"),
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {
                    "openAPIV3Schema": _object(
                        {
                            "apiVersion": _TEXT,
                            "kind": _TEXT,
                            "metadata": {"type": "object"},
                            "spec": _SPEC,
                            "status": _STATUS,
                        }
                    )
                },
            }
        ],
    },
}
"""Fields and columns as in Gardener's `types_managedresource.go`."""
