"""Fields of the kinds that Gardener's table has not, in the notation of `shapes`: KubeFleet's, Kubernetes' and our own.

Sources: KubeFleet's `apis/placement/v1beta1` and `apis/cluster/v1beta1`; Kubernetes' core, coordination, certificates
and autoscaling/v2; Gardener's `pkg/apis/security/v1alpha1`, and `pkg/apis/settings/v1alpha1` before v1.142. Of the
kinds that only controllers write there are none: nobody sends those.
"""

OWN = """
OwnerReference: apiVersion blockOwnerDeletion=boolean controller=boolean kind name uid
Metadata: annotations={string} creationTimestamp=time deletionGracePeriodSeconds=integer deletionTimestamp=time
  finalizers=[string] generateName generation=integer labels={string} managedFields=[open] name namespace
  ownerReferences=[OwnerReference] resourceVersion selfLink uid
ScaleIn: drain=boolean
v1/Namespace: apiVersion kind metadata=Metadata spec=NamespaceSpec status=open
NamespaceSpec: finalizers=[string]
v1/ConfigMap: apiVersion kind metadata=Metadata data={string} binaryData={bytes} immutable=boolean
v1/Secret: apiVersion kind metadata=Metadata data={bytes} stringData={string} type immutable=boolean
v1/ResourceQuota: apiVersion kind metadata=Metadata spec=QuotaSpec status=open
QuotaSpec: hard={quantity} scopes=[string] scopeSelector=open
security.gardener.cloud/v1alpha1/WorkloadIdentity: apiVersion kind metadata=Metadata spec=IdentitySpec status=open
IdentitySpec: audiences=[string] targetSystem=TargetSystem
TargetSystem: type providerConfig=open
core.gardener.cloud/v1beta1/Plant: apiVersion kind metadata=Metadata spec=PlantSpec status=open
PlantSpec: secretRef=LocalReference endpoints=[PlantEndpoint]
PlantEndpoint: name url purpose
core.gardener.cloud/v1/ControllerDeployment: apiVersion kind metadata=Metadata helm=Helm injectGardenKubeconfig=boolean
  resources=[NamedResource]
Helm: rawChart=bytes values=open ociRepository=OCIRepository
OCIRepository: ref repository tag digest pullSecretRef=LocalReference caBundleSecretRef=LocalReference
LocalReference: name
NamedResource: name resourceRef=CrossVersionReference
CrossVersionReference: apiVersion kind name
settings.gardener.cloud/v1alpha1/OpenIDConnectPreset: apiVersion kind metadata=Metadata spec=PresetSpec
PresetSpec: server=PresetServer client=PresetClient shootSelector=LabelSelector weight=integer
settings.gardener.cloud/v1alpha1/ClusterOpenIDConnectPreset: apiVersion kind metadata=Metadata spec=ClusterPresetSpec
ClusterPresetSpec: server=PresetServer client=PresetClient shootSelector=LabelSelector projectSelector=LabelSelector
  weight=integer
PresetServer: caBundle clientID groupsClaim groupsPrefix issuerURL requiredClaims={string} signingAlgs=[string]
  usernameClaim usernamePrefix
PresetClient: secret extraConfig={string}
coordination.k8s.io/v1/Lease: apiVersion kind metadata=Metadata spec=LeaseSpec
LeaseSpec: acquireTime=time holderIdentity leaseDurationSeconds=integer leaseTransitions=integer preferredHolder
  renewTime=time strategy
certificates.k8s.io/v1/CertificateSigningRequest: apiVersion kind metadata=Metadata spec=SigningRequestSpec status=open
SigningRequestSpec: request=bytes signerName usages=[string] expirationSeconds=integer username uid groups=[string]
  extra=open
LabelSelector: matchLabels={string} matchExpressions=[LabelRequirement]
LabelRequirement: key operator values=[string]
seedmanagement.gardener.cloud/v1alpha1/SeedAutoscaler: apiVersion kind metadata=Metadata spec=AutoscalerSpec status=open
AutoscalerSpec: scaleTargetRef=ScaleTarget minReplicas=integer maxReplicas=integer metrics=[Metric] behavior=Behavior
ScaleTarget: apiVersion kind name
Metric: type resource=ResourceMetric
ResourceMetric: name target=MetricTarget
MetricTarget: type averageUtilization=integer averageValue=quantity
Behavior: scaleUp=ScalingRules scaleDown=ScalingRules
ScalingRules: stabilizationWindowSeconds=integer selectPolicy policies=[ScalingPolicy] tolerance=quantity
ScalingPolicy: type value=integer periodSeconds=integer
cluster.kubernetes-fleet.io/v1beta1/MemberCluster: apiVersion kind metadata=Metadata spec=MemberSpec status=open
MemberSpec: identity=Identity heartbeatPeriodSeconds=integer taints=[Taint] deleteOptions=DeleteOptions
Identity: apiGroup kind name namespace
Taint: key value effect
DeleteOptions: validationMode
placement.kubernetes-fleet.io/v1beta1/ClusterResourcePlacement: apiVersion kind metadata=Metadata spec=PlacementSpec
  status=open
placement.kubernetes-fleet.io/v1beta1/ResourcePlacement: apiVersion kind metadata=Metadata spec=PlacementSpec
  status=open
PlacementSpec: resourceSelectors=[ResourceSelector] policy=Policy strategy=Strategy revisionHistoryLimit=integer
  statusReportingScope
ResourceSelector: group version kind name labelSelector=LabelSelector selectionScope
Policy: placementType clusterNames=[string] numberOfClusters=integer affinity=Affinity
  topologySpreadConstraints=[SpreadConstraint] tolerations=[Toleration]
Affinity: clusterAffinity=ClusterAffinity
ClusterAffinity: requiredDuringSchedulingIgnoredDuringExecution=RequiredTerms
  requiredDuringSchedulingRequiredDuringExecution=RequiredTerms
  preferredDuringSchedulingIgnoredDuringExecution=[PreferredTerm]
RequiredTerms: clusterSelectorTerms=[SelectorTerm]
SelectorTerm: labelSelector=LabelSelector propertySelector=PropertySelector propertySorter=PropertySorter
PropertySelector: matchExpressions=[PropertyRequirement]
PropertyRequirement: name operator values=[string]
PropertySorter: name sortOrder
PreferredTerm: weight=integer preference=SelectorTerm
SpreadConstraint: topologyKey maxSkew=integer whenUnsatisfiable
Toleration: key operator value effect
Strategy: type rollingUpdate=RollingUpdate applyStrategy=ApplyStrategy deleteStrategy=DeleteStrategy
  reportBackStrategy=ReportBackStrategy
RollingUpdate: maxUnavailable=int-or-string maxSurge=int-or-string unavailablePeriodSeconds=integer
ApplyStrategy: comparisonOption whenToApply whenToTakeOver type allowCoOwnership=boolean
  serverSideApplyConfig=ServerSideApply
ServerSideApply: force=boolean
DeleteStrategy: propagationPolicy
ReportBackStrategy: type destination
placement.kubernetes-fleet.io/v1beta1/ClusterResourcePlacementEviction: apiVersion kind metadata=Metadata
  spec=EvictionSpec status=open
EvictionSpec: placementName clusterName
placement.kubernetes-fleet.io/v1beta1/ClusterResourcePlacementDisruptionBudget: apiVersion kind metadata=Metadata
  spec=BudgetSpec
BudgetSpec: maxUnavailable=int-or-string minAvailable=int-or-string
placement.kubernetes-fleet.io/v1beta1/ClusterResourceEnvelope: apiVersion kind metadata=Metadata data=open
placement.kubernetes-fleet.io/v1beta1/ResourceEnvelope: apiVersion kind metadata=Metadata data=open
placement.kubernetes-fleet.io/v1beta1/ClusterResourceOverride: apiVersion kind metadata=Metadata
  spec=ClusterOverrideSpec
ClusterOverrideSpec: placement=PlacementReference clusterResourceSelectors=[ResourceSelector] policy=OverridePolicy
placement.kubernetes-fleet.io/v1beta1/ResourceOverride: apiVersion kind metadata=Metadata spec=OverrideSpec
OverrideSpec: placement=PlacementReference resourceSelectors=[OverriddenResource] policy=OverridePolicy
PlacementReference: name scope
OverriddenResource: group version kind name
OverridePolicy: overrideRules=[OverrideRule]
OverrideRule: clusterSelector=RequiredTerms overrideType jsonPatchOverrides=[PatchOperation]
PatchOperation: op path value=open
"""
