"""Policy of a seed's API that lets extension objects, and definitions of kinds, be deleted only once that is confirmed.

Source: Gardener's webhook `crd-deletion-protection` (`pkg/resourcemanager/webhook/crddeletionprotection`), as a
ValidatingAdmissionPolicy: the API server decides by itself.
"""

from collections.abc import Sequence

from gardenbus.common.api.confirmation import CONFIRMATION
from gardenbus.common.api.document import Document
from gardenbus.gardenlet.domain.extension_objects.kinds import GROUP

NAME = "deletion-confirmation"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_API_VERSION = "admissionregistration.k8s.io/v1"
_PROTECTED_LABEL = "gardener.cloud/deletion-protected"
_PROTECTED = (
    "backupbuckets",
    "backupentries",
    "containerruntimes",
    "controlplanes",
    "dnsrecords",
    "extensions",
    "infrastructures",
    "networks",
    "operatingsystemconfigs",
    "selfhostedshootexposures",
    "workers",
)
_IS_PROTECTED = (
    "request.resource.resource != 'customresourcedefinitions' || (has(oldObject.metadata.labels) && "
    f"oldObject.metadata.labels[?'{_PROTECTED_LABEL}'].orValue('') == 'true')"
)
_IS_CONFIRMED = (
    "has(oldObject.metadata.annotations) && "
    f"oldObject.metadata.annotations[?'{CONFIRMATION}'].orValue('') in ['1', 't', 'T', 'true', 'TRUE', 'True']"
)

POLICY: Document = {
    "apiVersion": _API_VERSION,
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": NAME},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [group], "apiVersions": ["*"], "operations": ["DELETE"], "resources": list(resources)}
                for group, resources in (
                    (GROUP, _PROTECTED),
                    ("druid.gardener.cloud", ("etcds",)),
                    ("apiextensions.k8s.io", ("customresourcedefinitions",)),
                )
            ]
        },
        "matchConditions": [{"name": "protected", "expression": _IS_PROTECTED}],
        "validations": [
            {
                "expression": _IS_CONFIRMED,
                "message": f'must have a "{CONFIRMATION}" annotation to delete',
                "reason": "Forbidden",
            }
        ],
    },
}
BINDING: Document = {
    "apiVersion": _API_VERSION,
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": NAME},
    "spec": {"policyName": NAME, "validationActions": ["Deny"]},
}

OBJECTS: Sequence[tuple[str, Document]] = ((f"{POLICIES}/{NAME}", POLICY), (f"{BINDINGS}/{NAME}", BINDING))
"""The policy and its binding, with their paths."""
