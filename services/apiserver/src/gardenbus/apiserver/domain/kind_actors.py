"""The services that act on the objects of each kind; none does on the kinds that are not here."""

from collections.abc import Mapping

from gardenbus.common.api.kinds import CARRIED_GROUPS, KindSpec

_SCHEDULING_DATA = "apiserver, scheduler, controllermanager"
_CONTROLLER_MANAGER = "controllermanager"
_PLACEMENT = "placement"

ACTORS: Mapping[str, str] = {
    "Shoot": "scheduler, gardenlet, lifecycle, controllermanager",
    "Seed": "scheduler, gardenlet, lifecycle",
    "CloudProfile": _SCHEDULING_DATA,
    "NamespacedCloudProfile": _SCHEDULING_DATA,
    "Project": _SCHEDULING_DATA,
    "ExposureClass": _SCHEDULING_DATA,
    "SecretBinding": f"apiserver, {_CONTROLLER_MANAGER}",
    "CredentialsBinding": f"apiserver, {_CONTROLLER_MANAGER}",
    "InternalSecret": _CONTROLLER_MANAGER,
    "WorkloadIdentity": _CONTROLLER_MANAGER,
    "ResourceQuota": "apiserver (counts objects), placement",
    "ShootState": "lifecycle, gardenlet",
    "ManagedSeed": "gardenlet",
    "ManagedSeedSet": "managedseedset",
    "SeedAutoscaler": "autoscaler",
    "MemberCluster": "placement, memberagent",
    "ClusterResourcePlacement": _PLACEMENT,
    "ResourcePlacement": _PLACEMENT,
    "ClusterSchedulingPolicySnapshot": _PLACEMENT,
    "SchedulingPolicySnapshot": _PLACEMENT,
    "ClusterResourceSnapshot": _PLACEMENT,
    "ResourceSnapshot": _PLACEMENT,
    "ClusterResourceBinding": _PLACEMENT,
    "ResourceBinding": _PLACEMENT,
    "ClusterResourcePlacementEviction": _PLACEMENT,
    "ClusterResourcePlacementDisruptionBudget": _PLACEMENT,
    "Work": "placement, memberagent",
    "ClusterResourceEnvelope": _PLACEMENT,
    "ResourceEnvelope": _PLACEMENT,
    "ClusterResourceOverride": _PLACEMENT,
    "ResourceOverride": _PLACEMENT,
    "ClusterResourceOverrideSnapshot": _PLACEMENT,
    "ResourceOverrideSnapshot": _PLACEMENT,
    "Namespace": "apiserver, controllermanager, placement",
    "ConfigMap": "scheduler (region distances), identity (revocations), controllermanager, placement",
    "Secret": "identity (credentials, bootstrap tokens), controllermanager, placement",
    "Quota": "apiserver (sums), controllermanager",
    "BackupBucket": f"{_CONTROLLER_MANAGER}, gardenlet",
    "BackupEntry": f"{_CONTROLLER_MANAGER}, gardenlet",
    "Bastion": f"{_CONTROLLER_MANAGER}, gardenlet",
    "Plant": _CONTROLLER_MANAGER,
    "ControllerRegistration": f"apiserver, {_CONTROLLER_MANAGER}",
    "ControllerDeployment": f"{_CONTROLLER_MANAGER}, gardenlet",
    "ControllerInstallation": f"{_CONTROLLER_MANAGER}, gardenlet",
    "OpenIDConnectPreset": "apiserver",
    "ClusterOpenIDConnectPreset": "apiserver",
    "Event": "the services record them",
    "Lease": "lifecycle",
    "CertificateSigningRequest": "identity",
    "ControllerRevision": "managedseedset",
}
"""By kind: the services that act on it."""

_CARRIED = frozenset((*CARRIED_GROUPS, ""))


def actors_of(kind: KindSpec) -> str:
    """The services that act on a kind; "" when none does. Kubernetes' own kinds are carried to member clusters."""
    if kind.namespaced is None:
        return ""
    return ACTORS.get(kind.kind) or (_PLACEMENT if kind.group in _CARRIED else "")
