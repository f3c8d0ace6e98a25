"""Feature gates of Kubernetes and admission plug-ins of its API server: in which versions there is each. Pure.

A line has a name, then `+` the version that it came with, `-` the one that it went with, and for a gate the value that
it cannot leave from a version on (`true@1.34`). Source: Gardener's `pkg/utils/validation/{features,admissionplugins}`,
v1.149.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from gardenbus.common.api.garden.expirable_versions import Numbers, numbers_of

GATED_COMPONENTS = ("kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet")
"""Fields of a Shoot's `spec.kubernetes` whose components have feature gates of Kubernetes."""


class VersionedFeature(NamedTuple):
    """Versions of Kubernetes that have something: from `added` until before `removed`, () for no such bound."""

    added: Numbers = ()
    removed: Numbers = ()
    locked: Numbers = ()
    """Version from which a gate has its value for good."""
    value: bool = False

    def is_in(self, version: Numbers) -> bool:
        """True for a version that has it, and for one that is not known, ()."""
        return not version or (self.added <= version and (not self.removed or version < self.removed))

    def is_locked_in(self, version: Numbers) -> bool:
        """True for a version in which a gate cannot be changed any more."""
        return bool(self.locked and version) and version >= self.locked


@cache
def feature_gates() -> Mapping[str, VersionedFeature]:
    """The gates by name."""
    return dict(map(_feature, _GATES.split("\n")))


@cache
def admission_plugins() -> Mapping[str, VersionedFeature]:
    """The plug-ins by name."""
    return dict(map(_feature, _PLUGINS.split("\n")))


DROPPED_FIELDS: Sequence[tuple[Numbers, str]] = (
    ((1, 32), "kubernetes.clusterAutoscaler.ignoreTaints"),
    ((1, 33), "kubernetes.kubeControllerManager.podEvictionTimeout"),
    ((1, 33), "kubernetes.clusterAutoscaler.maxEmptyBulkDelete"),
    ((1, 35), "kubernetes.kubeAPIServer.enableAnonymousAuthentication"),
    ((1, 35), "kubernetes.kubeAPIServer.watchCacheSizes.default"),
    ((1, 35), "kubernetes.kubeScheduler.kubeMaxPDVols"),
    ((1, 35), "addons"),
    ((1, 35), "dns.providers[].secretName"),
)
"""The first version that has no use for a field of a Shoot, and the field's path below `spec`."""

REQUIRED_PLUGINS = frozenset({
    "MutatingAdmissionWebhook", "NamespaceLifecycle", "NodeRestriction", "PodSecurity", "Priority",
    "StorageObjectInUseProtection", "ValidatingAdmissionWebhook",
})  # fmt: skip
"""Plug-ins that cannot be disabled."""

CONFIGURED_PLUGINS = frozenset({
    "EventRateLimit", "ImagePolicyWebhook", "MutatingAdmissionWebhook", "PodNodeSelector", "PodSecurity",
    "PodTolerationRestriction", "ResourceQuota", "ValidatingAdmissionWebhook",
})  # fmt: skip
"""Plug-ins that take a configuration."""

CALLING_PLUGINS = frozenset({"ImagePolicyWebhook", "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"})
"""Plug-ins that take a kubeconfig."""


def _feature(line: str) -> tuple[str, VersionedFeature]:
    name, *words = line.split(" ")
    added, removed, locked, value = (), (), (), False
    for word in words:
        match word[0]:
            case "+":
                added = numbers_of(word[1:])
            case "-":
                removed = numbers_of(word[1:])
            case _:
                stated, _, since = word.partition("@")
                locked, value = numbers_of(since), stated == "true"
    return name, VersionedFeature(added, removed, locked, value)


_PLUGINS = """\
AlwaysAdmit
AlwaysDeny
AlwaysPullImages
CertificateApproval
CertificateSigning
CertificateSubjectRestriction
ClusterTrustBundleAttest
DefaultIngressClass
DefaultStorageClass
DefaultTolerationSeconds
DenyServiceExternalIPs
EventRateLimit
ExtendedResourceToleration
ImagePolicyWebhook
JobValidation +1.36
LimitPodHardAntiAffinityTopology
LimitRanger
MutatingAdmissionPolicy +1.32
MutatingAdmissionWebhook
NamespaceAutoProvision
NamespaceExists
NamespaceLifecycle
NodeDeclaredFeatureValidator +1.35
NodeRestriction
OwnerReferencesPermissionEnforcement
PersistentVolumeClaimResize
PersistentVolumeLabel -1.31
PodGroupProtection +1.36
PodGroupWorkloadExists +1.36
PodNodeSelector
PodResizeValidator +1.36
PodSecurity
PodTolerationRestriction
PodTopologyLabels +1.33
Priority
ResourceQuota
RuntimeClass
ServiceAccount
StorageObjectInUseProtection
TaintNodesByCondition
ValidatingAdmissionPolicy
ValidatingAdmissionWebhook"""

_GATES = """\
AdmissionWebhookMatchConditions -1.33 true@1.30
AggregatedDiscoveryEndpoint -1.33 true@1.30
AggregatedDiscoveryRemoveBetaType +1.33 true@1.35
AllAlpha +1.17
AllBeta +1.17
AllowDNSOnlyNodeCSR +1.31
AllowInsecureKubeletCertificateSigningRequests +1.31
AllowOverwriteTerminationGracePeriodSeconds +1.32 false@1.35
AllowParsingUserUIDFromCertAuth +1.33
AllowServiceExternalIPs +1.36
AllowServiceLBStatusOnNonLB +1.29 -1.35 false@1.32
AllowUnsafeMalformedObjectDeletion +1.32
AnonymousAuthConfigurableEndpoints +1.31 true@1.34
AnyVolumeDataSource true@1.33
APIListChunking -1.33 true@1.29
APIPriorityAndFairness -1.31 true@1.29
APIResponseCompression
APIServerIdentity
APIServerTracing true@1.34
APIServingWithRoutine +1.30
AppArmor -1.33 true@1.31
AppArmorFields +1.30 -1.33 true@1.31
AuthorizeNodeWithSelectors +1.31 true@1.34
AuthorizePodWebsocketUpgradeCreatePermission +1.35
AuthorizeWithSelectors +1.31 true@1.34
BtreeWatchCache +1.32 true@1.33
CBORServingAndStorage +1.32
ChangeContainerStatusOnKubeletRestart +1.35
ClearingNominatedNodeNameAfterBinding +1.34
CloudControllerManagerWatchBasedRoutesReconciliation +1.35
CloudControllerManagerWebhook
CloudDualStackNodeIPs -1.32 true@1.30
ClusterTrustBundle
ClusterTrustBundleProjection +1.29
ComponentFlagz +1.32
ComponentSLIs -1.35
ComponentStatusz +1.32
ConcurrentWatchObjectDecode +1.31
ConsistentHTTPGetHandlers +1.26 -1.31 true@1.30
ConsistentListFromCache +1.28 true@1.34
ConstrainedImpersonation +1.35
ContainerCheckpoint
ContainerRestartRules +1.34
ContainerStopSignals +1.33
ContextualLogging true@1.30
ControllerManagerReleaseLeaderElectionLockOnExit +1.36
CoordinatedLeaderElection +1.31
CPUManager -1.33 true@1.26
CPUManagerPolicyAlphaOptions
CPUManagerPolicyBetaOptions
CPUManagerPolicyOptions true@1.33
CRDObservedGenerationTracking +1.35
CRDValidationRatcheting +1.28 true@1.33
CRIListStreaming +1.36
CronJobsScheduledAnnotation +1.28 -1.35 true@1.32
CrossNamespaceVolumeDataSource
CSIMigrationPortworx -1.36 true@1.33
CSIMigrationRBD -1.31
CSINodeExpandSecret -1.31 true@1.29
CSIServiceAccountTokenSecrets +1.35 true@1.36
CSIVolumeHealth
CustomCPUCFSQuotaPeriod
CustomResourceFieldSelectors +1.30 true@1.32
CustomResourceValidationExpressions -1.31 true@1.29
DeclarativeValidation +1.33 true@1.36
DeclarativeValidationBeta +1.36
DeclarativeValidationTakeover +1.33
DefaultHostNetworkHostPortsInPodTemplates +1.28 -1.31
DeploymentReplicaSetTerminatingReplicas +1.33
DetectCacheInconsistency +1.34
DevicePluginCDIDevices +1.28 -1.34 true@1.31
DisableAllocatorDualWrite +1.31 true@1.35
DisableCloudProviders -1.33 true@1.31
DisableCPUQuotaWithExclusiveCPUs +1.33
DisableKubeletCloudCredentialProviders -1.33 true@1.31
DisableNodeKubeProxyVersion +1.29 true@1.36
DRAAdminAccess +1.32 true@1.36
DRAConsumableCapacity +1.34
DRAControlPlaneController +1.26 -1.32
DRADeviceBindingConditions +1.34
DRADeviceTaintRules +1.35
DRADeviceTaints +1.33
DRAExtendedResource +1.34
DRAListTypeAttributes +1.36
DRANodeAllocatableResources +1.36
DRAPartitionableDevices +1.33
DRAPrioritizedList +1.33
DRAResourceClaimDeviceStatus +1.32
DRAResourceClaimGranularStatusAuthorization +1.36
DRAResourcePoolStatus +1.36
DRASchedulerFilterTimeout +1.34
DRAWorkloadResourceClaims +1.36
DynamicResourceAllocation true@1.35
EfficientWatchResumption -1.33 true@1.24
ElasticIndexedJob -1.34 true@1.31
EnvFiles +1.34
EventedPLEG
ExecProbeTimeout true@1.35
ExtendWebSocketsToKubelet +1.36
ExternalServiceAccountTokenSigner +1.32 true@1.36
GangScheduling +1.35
GenericWorkload +1.35
GitRepoVolumeDriver +1.33 false@1.36
GracefulNodeShutdown
GracefulNodeShutdownBasedOnPodPriority
HonorPVReclaimPolicy -1.36 true@1.33
HostnameOverride +1.34
HPAConfigurableTolerance +1.33
HPAContainerMetrics +1.20 -1.32 true@1.30
HPAScaleToZero
ImageMaximumGCAge +1.29 true@1.35
ImageVolume +1.31 true@1.36
ImageVolumeWithDigest +1.36
InformerResourceVersion +1.30
InPlacePodLevelResourcesVerticalScaling +1.35
InPlacePodVerticalScaling +1.27 true@1.35
InPlacePodVerticalScalingAllocatedStatus +1.32 -1.36
InPlacePodVerticalScalingExclusiveCPUs +1.32
InPlacePodVerticalScalingExclusiveMemory +1.34
InPlacePodVerticalScalingInitContainers +1.36
InTreePluginAWSUnregister -1.31
InTreePluginAzureDiskUnregister -1.31
InTreePluginAzureFileUnregister -1.31
InTreePluginGCEUnregister -1.31
InTreePluginOpenStackUnregister -1.31
InTreePluginPortworxUnregister -1.36
InTreePluginRBDUnregister -1.31
InTreePluginvSphereUnregister -1.31
JobBackoffLimitPerIndex +1.28 true@1.33
JobManagedBy +1.30 true@1.35
JobPodFailurePolicy -1.33 true@1.31
JobPodReplacementPolicy +1.28 true@1.34
JobReadyPods -1.31 true@1.29
JobSuccessPolicy +1.30 true@1.33
KMSv1 +1.28
KMSv2 +1.25 -1.32 true@1.29
KMSv2KDF +1.28 -1.32 true@1.29
KubeletCgroupDriverFromCRI +1.28 true@1.34
KubeletCrashLoopBackOffMax +1.32
KubeletEnsureSecretPulledImages +1.33
KubeletFineGrainedAuthz +1.32 true@1.36
KubeletInUserNamespace
KubeletPodResourcesDynamicResources true@1.36
KubeletPodResourcesGet true@1.36
KubeletPodResourcesListUseActivePods +1.34
KubeletPSI +1.33 true@1.36
KubeletRegistrationGetOnExistsOnly +1.32
KubeletSeparateDiskGC +1.29
KubeletServiceAccountTokenForCredentialProviders +1.33
KubeletTracing true@1.34
KubeProxyDrainingTerminatingNodes +1.28 -1.33 true@1.31
LegacyServiceAccountTokenCleanUp +1.28 -1.32 true@1.30
LegacySidecarContainers +1.33 -1.34
ListFromCacheSnapshot +1.33
LoadBalancerIPMode +1.29 -1.35 true@1.32
LocalStorageCapacityIsolationFSQuotaMonitoring
LogarithmicScaleDown true@1.31
ManifestBasedAdmissionControlConfig +1.36
MatchLabelKeysInPodAffinity +1.29 true@1.33
MatchLabelKeysInPodTopologySpread
MatchLabelKeysInPodTopologySpreadSelectorMerge +1.34
MaxUnavailableStatefulSet
MemoryManager +1.21 -1.36 true@1.32
MemoryQoS
MinDomainsInPodTopologySpread +1.24 -1.32 true@1.30
MultiCIDRServiceAllocator true@1.34
MutableCSINodeAllocatableCount +1.33 true@1.36
MutablePodResourcesForSuspendedJobs +1.35
MutablePVNodeAffinity +1.35
MutableSchedulingDirectivesForSuspendedJobs +1.35
MutatingAdmissionPolicy +1.30
NativeHistograms +1.36
NewVolumeManagerReconstruction +1.25 -1.32 true@1.30
NFTablesProxyMode +1.29 true@1.33
NodeDeclaredFeatures +1.35
NodeInclusionPolicyInPodTopologySpread true@1.33
NodeLogQuery true@1.36
NodeOutOfServiceVolumeDetach +1.24 -1.32 true@1.28
NodeSwap true@1.34
NominatedNodeNameForExpectation +1.34
OpenAPIEnums
OpportunisticBatching +1.35
OrderedNamespaceDeletion +1.33 true@1.34
PDBUnhealthyPodEvictionPolicy -1.33 true@1.31
PersistentVolumeClaimUnusedSinceTime +1.36
PersistentVolumeLastPhaseTransitionTime +1.28 -1.33 true@1.31
PLEGOnDemandRelist +1.36
PodAndContainerStatsFromCRI
PodCertificateRequest +1.34
PodDeletionCost
PodDisruptionConditions -1.34 true@1.31
PodHostIPs +1.28 -1.32 true@1.30
PodIndexLabel +1.28 -1.35 true@1.32
PodLevelResourceManagers +1.36
PodLevelResources +1.32
PodLifecycleSleepAction +1.29 true@1.34
PodLifecycleSleepActionAllowZero +1.32 true@1.34
PodLogsQuerySplitStreams +1.32
PodObservedGenerationTracking +1.33 true@1.35
PodReadyToStartContainersCondition +1.28
PodsAPI +1.36
PodSchedulingReadiness true@1.30
PodTopologyLabelsAdmission +1.33
PortForwardWebsockets +1.30
PreferAlignCpusByUncoreCache +1.32
PreferSameTrafficDistribution +1.33 true@1.35
PreventStaticPodAPIReferences +1.34
ProbeHostPodSecurityStandards +1.34 -1.35 true@1.34
ProcMountType true@1.36
QOSReserved
ReadWriteOncePod -1.31 true@1.29
RecoverVolumeExpansionFailure +1.28 true@1.34
RecursiveReadOnlyMounts +1.30 true@1.33
ReduceDefaultCrashLoopBackOffDecay +1.33
RelaxedDNSSearchValidation +1.32 true@1.34
RelaxedEnvironmentVariableValidation +1.30 true@1.34
RelaxedServiceNameValidation +1.34
ReloadKubeletClientCAFile +1.36
ReloadKubeletServerCertificateFile +1.31
RemainingItemCount -1.33 true@1.29
RemoteRequestHeaderUID +1.32
ResilientWatchCacheInitialization +1.31 true@1.34
ResourceHealthStatus +1.31
ResourceHealthStatusMessage +1.36
RestartAllContainersOnContainerExits +1.35
RetryGenerateName +1.30 true@1.32
RotateKubeletServerCertificate
RuntimeClassInImageCriApi +1.29
SchedulerAsyncAPICalls +1.34
SchedulerAsyncPreemption +1.32
SchedulerPopFromBackoffQ +1.33
SchedulerQueueingHints +1.28 true@1.34
SELinuxChangePolicy +1.32 true@1.36
SELinuxMount +1.30
SELinuxMountReadWriteOncePod true@1.29
SeparateCacheWatchRPC +1.28 false@1.36
SeparateTaintEvictionController +1.29 true@1.34
ServerSideApply +1.14 -1.32 true@1.22
ServerSideFieldValidation +1.23 -1.32 true@1.27
ServiceAccountNodeAudienceRestriction +1.32
ServiceAccountTokenJTI +1.29 true@1.32
ServiceAccountTokenNodeBinding +1.29 true@1.33
ServiceAccountTokenNodeBindingValidation +1.29 true@1.32
ServiceAccountTokenPodNodeInfo +1.29 true@1.32
ServiceCIDRStatusFieldWiping +1.36
ServiceNodePortStaticSubrange -1.31 true@1.29
ServiceTrafficDistribution +1.30 -1.36 true@1.33
ShardedListAndWatch +1.36
SidecarContainers +1.28 true@1.33
SizeBasedListCostEstimate +1.34
SizeMemoryBackedVolumes +1.20 -1.35 true@1.32
SkipReadOnlyValidationGCE +1.28 -1.31
StableLoadBalancerNodeSet -1.32 true@1.30
StaleControllerConsistencyDaemonSet +1.36
StaleControllerConsistencyJob +1.36
StaleControllerConsistencyReplicaSet +1.36
StaleControllerConsistencyStatefulSet +1.36
StatefulSetAutoDeletePVC +1.23 -1.35 true@1.32
StatefulSetStartOrdinal -1.34 true@1.31
StorageCapacityScoring +1.33
StorageNamespaceIndex +1.30
StorageVersionAPI
StorageVersionHash
StorageVersionMigrator +1.30
StreamingCollectionEncodingToJSON +1.33 true@1.34
StreamingCollectionEncodingToProtobuf +1.33 true@1.34
StrictCostEnforcementForVAP +1.30 -1.35 true@1.32
StrictCostEnforcementForWebhooks +1.30 -1.35 true@1.32
StrictIPCIDRValidation +1.33
StructuredAuthenticationConfiguration +1.29 true@1.34
StructuredAuthenticationConfigurationEgressSelector +1.34
StructuredAuthenticationConfigurationJWKSMetrics +1.35
StructuredAuthorizationConfiguration +1.29 -1.36 true@1.32
SupplementalGroupsPolicy +1.31 true@1.35
SystemdWatchdog +1.32 true@1.35
TaintTolerationComparisonOperators +1.35
TokenRequestServiceAccountUIDValidation +1.34
TopologyAwareHints -1.36 true@1.33
TopologyAwareWorkloadScheduling +1.36
TopologyManagerPolicyAlphaOptions
TopologyManagerPolicyBetaOptions
TopologyManagerPolicyOptions true@1.32
TranslateStreamCloseWebsocketRequests +1.29
UnauthenticatedHTTP2DOSMitigation
UnknownVersionInteroperabilityProxy +1.28
UserNamespacesHostNetworkSupport +1.35
UserNamespacesPodSecurityStandards +1.29 -1.35
UserNamespacesSupport +1.28 true@1.36
ValidatingAdmissionPolicy -1.32 true@1.30
VolumeAttributesClass +1.29 true@1.36
VolumeCapacityPriority -1.33
VolumeLimitScaling +1.35
WatchBookmark -1.33 true@1.17
WatchCacheInitializationPostStartHook +1.31
WatchFromStorageWithoutResourceVersion -1.36 false@1.33
WatchList
WatchListClient +1.30
WindowsCPUAndMemoryAffinity +1.32
WindowsGracefulNodeShutdown +1.32
WindowsHostNetwork
WinDSR true@1.34
WinOverlay true@1.34
WorkloadAwarePreemption +1.36
WorkloadWithJob +1.36
ZeroLimitedNominalConcurrencyShares +1.29 -1.32 true@1.30"""
