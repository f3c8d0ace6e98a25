"""Phases of projects, their resource quotas, and the order in which the contents of a namespace are deleted.

| phase | |
|---|---|
| Pending | the project was accepted |
| Ready | its namespace is there and its own, and so is its ResourceQuota |
| Failed | its namespace cannot be had |
| Terminating | it is being deleted, and waits for its shoots or its namespace |

Source: Gardener's `pkg/controllermanager/controller/project/project/reconciler.go`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from gardenbus.common.api.configuration.controller_manager import ProjectQuota
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import with_finalizer
from gardenbus.common.api.owners import controller_reference
from gardenbus.controllermanager.domain.project_namespaces import with_owner

Phase = Literal["Pending", "Ready", "Failed", "Terminating"]

RESOURCE_QUOTA = "gardener"
"""Name of the ResourceQuota in a project's namespace."""

DEFAULT_QUOTA = ProjectQuota(
    config={
        "spec": {
            "hard": {
                "count/shoots.core.gardener.cloud": "10000",
                "count/secrets": "10000",
                "count/configmaps": "10000",
            }
        }
    }
)
"""ResourceQuota of new projects where none are configured: more than a team needs, and less than the store holds."""

_STAGES: Sequence[frozenset[str]] = (
    frozenset({"bastion", "secretbinding", "credentialsbinding"}),
    frozenset({"quota", "namespacedcloudprofile", "workloadidentity", "internalsecret", "secret", "configmap"}),
)
"""Kinds that refer to others go first, what others refer to last; the rest goes in between."""


def with_phase(project: Document, phase: Phase, generation: int) -> Document:
    """A project in a phase, which is that of a generation."""
    return {**project, "status": {**section(project, "status"), "phase": phase, "observedGeneration": generation}}


def accepted(project: Document, generation: int) -> Document:
    """A project with the finalizer, and with a phase; the same project where that is so."""
    project = with_finalizer(project)
    return project if section(project, "status").get("phase") else with_phase(project, "Pending", generation)


def has_been_ready(project: Document) -> bool:
    """True once a project has had all that is its own; also for those that are older than the default quota."""
    return section(project, "status").get("phase") not in (None, "Pending", "Failed")


def quota_of(labels: Mapping[str, str], quotas: Iterable[ProjectQuota]) -> ProjectQuota | None:
    """The first quota whose selector matches a project's labels."""
    return next((quota for quota in quotas if quota.project_selector.meets(labels)), None)


def resource_quota(project: Document, namespace: str, quota: ProjectQuota, stored: Document | None) -> Document:
    """The ResourceQuota of a project: hard values that are there already stay, those that are not configured go."""
    document = stored or {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": RESOURCE_QUOTA, "namespace": namespace},
    }
    metadata, spec = section(document, "metadata"), section(document, "spec")
    merged = {
        field: {**section(metadata, field), **section(quota.config, "metadata", field)}
        for field in ("labels", "annotations")
    }
    existing = section(spec, "hard")
    hard = {name: existing.get(name, value) for name, value in section(quota.config, "spec", "hard").items()}
    metadata = {**metadata, **{field: value for field, value in merged.items() if value}}
    return with_owner({**document, "metadata": metadata, "spec": {**spec, "hard": hard}}, controller_reference(project))


def stages_of(kinds: Iterable[str]) -> Sequence[Sequence[str]]:
    """Kinds in the order in which their objects leave a namespace: a stage begins when the one before it is empty."""
    first, last = _STAGES
    listed = sorted(kinds)
    return (
        [kind for kind in listed if kind in first],
        [kind for kind in listed if kind not in first | last],
        [kind for kind in listed if kind in last],
    )
