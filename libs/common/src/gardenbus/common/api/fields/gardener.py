"""Every field of Gardener's kinds, in the notation of `shapes`; made by `gardenbus.docs.gardener_fields`."""

GARDENER = """
ManagedFields: apiVersion fieldsType fieldsV1=open manager operation subresource time=time
OwnerReferences: apiVersion blockOwnerDeletion=boolean controller=boolean kind name uid
Metadata: annotations={string} creationTimestamp=time deletionGracePeriodSeconds=integer deletionTimestamp=time
  finalizers=[string] generateName generation=integer labels={string} managedFields=[ManagedFields] name namespace
  ownerReferences=[OwnerReferences] resourceVersion selfLink uid
CredentialsRef: apiVersion fieldPath kind name namespace resourceVersion uid
Provider: region type
Spec: credentialsRef=CredentialsRef provider=Provider providerConfig=open seedName shootRef=CredentialsRef
GeneratedSecretRef: name namespace
LastError: codes=[string] description lastUpdateTime=time taskID
LastOperation: description lastUpdateTime=time progress=integer state type
Status: generatedSecretRef=GeneratedSecretRef lastError=LastError lastOperation=LastOperation
  observedGeneration=integer providerStatus=open
core.gardener.cloud/v1beta1/BackupBucket: apiVersion kind metadata=Metadata spec=Spec status=Status
Spec2: bucketName seedName shootRef=CredentialsRef
Status2: lastError=LastError lastOperation=LastOperation migrationStartTime=time observedGeneration=integer seedName
core.gardener.cloud/v1beta1/BackupEntry: apiVersion kind metadata=Metadata spec=Spec2 status=Status2
MachineImage: name version
MachineType: name
Bastion: machineImage=MachineImage machineType=MachineType
Lifecycle: classification startTime=time
Versions: classification expirationDate=time lifecycle=[Lifecycle] version
Kubernetes: versions=[Versions]
Limits: maxNodesTotal=integer
MachineCapabilities: name values=[string]
ContainerRuntimes: providerConfig=open type
Cri: containerRuntimes=[ContainerRuntimes] name
InPlaceUpdates: minVersionForUpdate supported=boolean
Versions2: architectures=[string] capabilityFlavors=[open] classification cri=[Cri] expirationDate=time
  inPlaceUpdates=InPlaceUpdates kubeletVersionConstraint lifecycle=[Lifecycle] version
MachineImages: name updateStrategy versions=[Versions2]
MachineControllerManager: machineCreationTimeout=duration
Storage: class minSize=quantity size=quantity type
MachineTypes: architecture capabilities={[string]} cpu=quantity gpu=quantity
  machineControllerManager=MachineControllerManager memory=quantity name storage=Storage usable=boolean
Zones: name unavailableMachineTypes=[string] unavailableVolumeTypes=[string]
Regions: accessRestrictions=[MachineType] labels={string} name zones=[Zones]
MatchExpressions: key operator values=[string]
SeedSelector: matchExpressions=[MatchExpressions] matchLabels={string} providerTypes=[string]
VolumeTypes: class minSize=quantity name usable=boolean
Spec3: bastion=Bastion caBundle kubernetes=Kubernetes limits=Limits machineCapabilities=[MachineCapabilities]
  machineImages=[MachineImages] machineTypes=[MachineTypes] providerConfig=open regions=[Regions]
  seedSelector=SeedSelector type volumeTypes=[VolumeTypes]
Versions3: classification version
Kubernetes2: versions=[Versions3]
MachineImages2: name versions=[Versions3]
Status3: kubernetes=Kubernetes2 machineImages=[MachineImages2]
core.gardener.cloud/v1beta1/CloudProfile: apiVersion kind metadata=Metadata spec=Spec3 status=Status3
Spec4: deploymentRef=CredentialsRef registrationRef=CredentialsRef resourceRefs=[CredentialsRef]
  seedRef=CredentialsRef shootRef=CredentialsRef
Conditions: codes=[string] lastTransitionTime=time lastUpdateTime=time message reason status type
Status4: conditions=[Conditions] providerStatus=open
core.gardener.cloud/v1beta1/ControllerInstallation: apiVersion kind metadata=Metadata spec=Spec4 status=Status4
SeedSelector2: matchExpressions=[MatchExpressions] matchLabels={string}
Deployment: deploymentRefs=[MachineType] policy seedSelector=SeedSelector2
Lifecycle2: delete migrate reconcile
Resources: autoEnable=[string] clusterCompatibility=[string] continuousEndpointUpdate=boolean kind
  lifecycle=Lifecycle2 primary=boolean reconcileTimeout=duration type workerlessSupported=boolean
Spec5: deployment=Deployment resources=[Resources]
core.gardener.cloud/v1beta1/ControllerRegistration: apiVersion kind metadata=Metadata spec=Spec5
Tolerations: key value
Scheduling: seedSelector=SeedSelector tolerations=[Tolerations]
core.gardener.cloud/v1beta1/ExposureClass: apiVersion handler kind metadata=Metadata scheduling=Scheduling
core.gardener.cloud/v1beta1/InternalSecret: apiVersion data={bytes} immutable=boolean kind metadata=Metadata
  stringData={string} type
Parent: kind name
Spec6: caBundle kubernetes=Kubernetes limits=Limits machineImages=[MachineImages] machineTypes=[MachineTypes]
  parent=Parent providerConfig=open volumeTypes=[VolumeTypes]
Status5: cloudProfileSpec=Spec3 observedGeneration=integer
core.gardener.cloud/v1beta1/NamespacedCloudProfile: apiVersion kind metadata=Metadata spec=Spec6 status=Status5
CreatedBy: apiGroup kind name namespace
DualApprovalForDeletion: includeServiceAccounts=boolean resource selector=SeedSelector2
Members: apiGroup kind name namespace role roles=[string]
Tolerations2: defaults=[Tolerations] whitelist=[Tolerations]
Spec7: createdBy=CreatedBy description dualApprovalForDeletion=[DualApprovalForDeletion] members=[Members] namespace
  owner=CreatedBy purpose tolerations=Tolerations2
Status6: conditions=[Conditions] lastActivityTimestamp=time observedGeneration=integer phase
  staleAutoDeleteTimestamp=time staleSinceTimestamp=time
core.gardener.cloud/v1beta1/Project: apiVersion kind metadata=Metadata spec=Spec7 status=Status6
Spec8: clusterLifetimeDays=integer metrics={quantity} scope=CredentialsRef
core.gardener.cloud/v1beta1/Quota: apiVersion kind metadata=Metadata spec=Spec8
Provider2: type
core.gardener.cloud/v1beta1/SecretBinding: apiVersion kind metadata=Metadata provider=Provider2
  quotas=[CredentialsRef] secretRef=GeneratedSecretRef
Backup: credentialsRef=CredentialsRef provider providerConfig=open region secretRef=GeneratedSecretRef
Defaults: credentialsRef=CredentialsRef domain type zone
Provider3: credentialsRef=CredentialsRef secretRef=GeneratedSecretRef type
Dns: defaults=[Defaults] internal=Defaults provider=Provider3
Extensions: disabled=boolean providerConfig=open type
Controller: kind providerConfig=open
Ingress: controller=Controller domain
ShootDefaults: pods services
Networks: blockCIDRs=[string] ipFamilies=[string] nodes pods services shootDefaults=ShootDefaults
Provider4: providerConfig=open region type zones=[string]
ResourceRef: apiVersion kind name
Resources2: name resourceRef=ResourceRef
Prober: enabled=boolean
DependencyWatchdog: prober=Prober weeder=Prober
Tolerations3: effect key operator tolerationSeconds=integer value
Configs: nodeSelector={string} resources={quantity} tolerations=[Tolerations3]
ExcessCapacityReservation: configs=[Configs] enabled=boolean
ProxyProtocol: allowed=boolean
Zones2: annotations={string} externalTrafficPolicy name proxyProtocol=ProxyProtocol
LoadBalancerServices: annotations={string} class externalTrafficPolicy proxyProtocol=ProxyProtocol zonalIngress=Prober
  zones=[Zones2]
Scheduling2: visible=boolean
VerticalPodAutoscaler: enabled=boolean featureGates={boolean} maxAllowed={quantity}
ZoneSelection: mode
Settings: dependencyWatchdog=DependencyWatchdog excessCapacityReservation=ExcessCapacityReservation
  loadBalancerServices=LoadBalancerServices persistentVolumeClaimAutoscaler=Prober scheduling=Scheduling2
  topologyAwareRouting=Prober verticalPodAutoscaler=VerticalPodAutoscaler zoneSelection=ZoneSelection
Providers: name purpose
Volume: minimumSize=quantity providers=[Providers]
Spec9: accessRestrictions=[MachineType] backup=Backup dns=Dns extensions=[Extensions] ingress=Ingress
  networks=Networks provider=Provider4 resources=[Resources2] settings=Settings taints=[Tolerations] volume=Volume
Gardener: id name version
Status7: allocatable={quantity} capacity={quantity} clientCertificateExpirationTimestamp=time clusterIdentity
  conditions=[Conditions] gardener=Gardener kubernetesVersion lastOperation=LastOperation observedGeneration=integer
core.gardener.cloud/v1beta1/Seed: apiVersion kind metadata=Metadata spec=Spec9 status=Status7
AccessRestrictions: name options={string}
KubernetesDashboard: authenticationMode enabled=boolean
NginxIngress: config={string} enabled=boolean externalTrafficPolicy loadBalancerSourceRanges=[string]
Addons: kubernetesDashboard=KubernetesDashboard nginxIngress=NginxIngress
HighAvailability: failureTolerance=Provider2
ControlPlane: highAvailability=HighAvailability
Domains: exclude=[string] include=[string]
Providers2: credentialsRef=ResourceRef domains=Domains primary=boolean secretName type zones=Domains
Dns2: domain providers=[Providers2]
Schedules: end location start
Hibernation: enabled=boolean schedules=[Schedules]
Autoscaling: minAllowed={quantity}
ClusterAutoscaler: autoscaling=Autoscaling emitPerNodeGroupMetrics=boolean expander
  ignoreDaemonsetsUtilization=boolean ignoreTaints=[string] initialNodeGroupBackoffDuration=duration
  maxBinpackingTime=duration maxDrainParallelism=integer maxEmptyBulkDelete=integer
  maxGracefulTerminationSeconds=integer maxNodeGroupBackoffDuration=duration maxNodeProvisionTime=duration
  maxScaleDownParallelism=integer newPodScaleUpDelay=duration nodeGroupBackoffResetTimeout=duration
  scaleDownDelayAfterAdd=duration scaleDownDelayAfterDelete=duration scaleDownDelayAfterFailure=duration
  scaleDownUnneededTime=duration scaleDownUtilizationThreshold=number scanInterval=duration startupTaints=[string]
  statusTaints=[string] verbosity=integer
Events: autoscaling=Autoscaling
Etcd: events=Events main=Events
AdmissionPlugins: config=open disabled=boolean kubeconfigSecretName name
AuditPolicy: configMapRef=CredentialsRef
AuditConfig: auditPolicy=AuditPolicy
EncryptionConfig: provider=Provider2 resources=[string]
Logging: httpAccessVerbosity=integer verbosity=integer
Requests: maxMutatingInflight=integer maxNonMutatingInflight=integer
ServiceAccountConfig: acceptedIssuers=[string] extendTokenExpiration=boolean issuer maxTokenExpiration=duration
StructuredAuthentication: configMapName
Kubeconfigs: authorizerName secretName
StructuredAuthorization: configMapName kubeconfigs=[Kubeconfigs]
Resources3: apiGroup resource size=integer
WatchCacheSizes: default=integer resources=[Resources3]
KubeAPIServer: admissionPlugins=[AdmissionPlugins] apiAudiences=[string] auditConfig=AuditConfig
  autoscaling=Autoscaling defaultNotReadyTolerationSeconds=integer defaultUnreachableTolerationSeconds=integer
  enableAnonymousAuthentication=boolean encryptionConfig=EncryptionConfig eventTTL=duration featureGates={boolean}
  logging=Logging requests=Requests runtimeConfig={boolean} serviceAccountConfig=ServiceAccountConfig
  structuredAuthentication=StructuredAuthentication structuredAuthorization=StructuredAuthorization tlsMinVersion
  watchCacheSizes=WatchCacheSizes
HorizontalPodAutoscaler: cpuInitializationPeriod=duration downscaleStabilization=duration
  initialReadinessDelay=duration syncPeriod=duration tolerance=number
KubeControllerManager: featureGates={boolean} horizontalPodAutoscaler=HorizontalPodAutoscaler nodeCIDRMaskSize=integer
  nodeCIDRMaskSizeIPv6=integer nodeMonitorGracePeriod=duration podEvictionTimeout=duration
KubeProxy: enabled=boolean featureGates={boolean} mode
KubeScheduler: featureGates={boolean} kubeMaxPDVols profile
EvictionHard: imageFSAvailable imageFSInodesFree memoryAvailable nodeFSAvailable nodeFSInodesFree
EvictionMinimumReclaim: imageFSAvailable=quantity imageFSInodesFree=quantity memoryAvailable=quantity
  nodeFSAvailable=quantity nodeFSInodesFree=quantity
EvictionSoftGracePeriod: imageFSAvailable=duration imageFSInodesFree=duration memoryAvailable=duration
  nodeFSAvailable=duration nodeFSInodesFree=duration
KubeReserved: cpu=quantity ephemeralStorage=quantity memory=quantity pid=quantity
MemorySwap: swapBehavior
Kubelet: containerLogMaxFiles=integer containerLogMaxSize=quantity cpuCFSQuota=boolean cpuManagerPolicy
  evictionHard=EvictionHard evictionMaxPodGracePeriod=integer evictionMinimumReclaim=EvictionMinimumReclaim
  evictionPressureTransitionPeriod=duration evictionSoft=EvictionHard evictionSoftGracePeriod=EvictionSoftGracePeriod
  failSwapOn=boolean featureGates={boolean} imageGCHighThresholdPercent=integer imageGCLowThresholdPercent=integer
  imageMaximumGCAge=duration imageMinimumGCAge=duration imagePullCredentialsVerificationPolicy
  kubeReserved=KubeReserved maxParallelImagePulls=integer maxPods=integer memorySwap=MemorySwap podPidsLimit=integer
  preloadedImagesVerificationAllowlist=[string] protectKernelDefaults=boolean registryBurst=integer
  registryPullQPS=integer seccompDefault=boolean serializeImagePulls=boolean singleProcessOOMKill=boolean
  streamingConnectionIdleTimeout=duration
VerticalPodAutoscaler2: cpuHistogramDecayHalfLife=duration enabled=boolean evictAfterOOMThreshold=duration
  evictionRateBurst=integer evictionRateLimit=number evictionTolerance=number featureGates={boolean}
  maxAllowed={quantity} memoryAggregationInterval=duration memoryAggregationIntervalCount=integer
  memoryHistogramDecayHalfLife=duration recommendationLowerBoundCPUPercentile=number
  recommendationLowerBoundMemoryPercentile=number recommendationMarginFraction=number
  recommendationUpperBoundCPUPercentile=number recommendationUpperBoundMemoryPercentile=number
  recommenderInterval=duration recommenderUpdateWorkerCount=integer targetCPUPercentile=number
  targetMemoryPercentile=number updaterInterval=duration
Kubernetes3: clusterAutoscaler=ClusterAutoscaler etcd=Etcd kubeAPIServer=KubeAPIServer
  kubeControllerManager=KubeControllerManager kubeProxy=KubeProxy kubeScheduler=KubeScheduler kubelet=Kubelet version
  verticalPodAutoscaler=VerticalPodAutoscaler2
EtcdEncryptionKey: rotationPeriod=duration
Credentials: etcdEncryptionKey=EtcdEncryptionKey observability=EtcdEncryptionKey sshKeypair=EtcdEncryptionKey
AutoRotation: credentials=Credentials
AutoUpdate: kubernetesVersion=boolean machineImageVersion=boolean
TimeWindow: begin end
Maintenance: autoRotation=AutoRotation autoUpdate=AutoUpdate confineSpecUpdateRollout=boolean timeWindow=TimeWindow
Alerting: emailReceivers=[string]
Monitoring: alerting=Alerting
Networking: ipFamilies=[string] nodes pods providerConfig=open services type
ClusterAutoscaler2: maxNodeProvisionTime=duration scaleDownGpuUtilizationThreshold=number
  scaleDownUnneededTime=duration scaleDownUnreadyTime=duration scaleDownUtilizationThreshold=number
Backup2: credentialsRef=CredentialsRef provider providerConfig=open region
Exposure: dns=open extension=ContainerRuntimes
ControlPlane2: backup=Backup2 exposure=Exposure
DataVolumes: encrypted=boolean name size type
Kubernetes4: kubelet=Kubelet version
Image: name providerConfig=open version
Machine: architecture image=Image type
MachineControllerManager2: autoPreserveFailedMachineMax=integer disableHealthTimeout=boolean
  inPlaceUpdateTimeout=duration machineCreationTimeout=duration machineDrainTimeout=duration
  machineHealthTimeout=duration machinePreserveTimeout=duration maxEvictRetries=integer nodeConditions=[string]
SystemComponents: allow=boolean
Taints: effect key timeAdded=time value
Workers: annotations={string} caBundle clusterAutoscaler=ClusterAutoscaler2 controlPlane=ControlPlane2 cri=Cri
  dataVolumes=[DataVolumes] kubeletDataVolumeName kubernetes=Kubernetes4 labels={string} machine=Machine
  machineControllerManager=MachineControllerManager2 maxSurge=int-or-string maxUnavailable=int-or-string
  maximum=integer minimum=integer name priority=integer providerConfig=open sysctls={string}
  systemComponents=SystemComponents taints=[Taints] updateStrategy volume=DataVolumes zones=[string]
WorkersSettings: sshAccess=Prober
Provider5: controlPlaneConfig=open infrastructureConfig=open type workers=[Workers] workersSettings=WorkersSettings
Rewriting: commonSuffixes=[string]
CoreDNS: autoscaling=ZoneSelection rewriting=Rewriting
NodeLocalDNS: disableForwardToUpstreamDNS=boolean enabled=boolean forceTCPToClusterDNS=boolean
  forceTCPToUpstreamDNS=boolean
SystemComponents2: coreDNS=CoreDNS nodeLocalDNS=NodeLocalDNS
Spec10: accessRestrictions=[AccessRestrictions] addons=Addons cloudProfile=Parent cloudProfileName
  controlPlane=ControlPlane credentialsBindingName dns=Dns2 exposureClassName extensions=[Extensions]
  hibernation=Hibernation kubernetes=Kubernetes3 maintenance=Maintenance monitoring=Monitoring networking=Networking
  provider=Provider5 purpose region resources=[Resources2] schedulerName secretBindingName seedName
  seedSelector=SeedSelector systemComponents=SystemComponents2 tolerations=[Tolerations]
AdvertisedAddresses: application name url
PendingWorkersRollouts: lastInitiationTime=time name
CertificateAuthorities: lastCompletionTime=time lastCompletionTriggeredTime=time lastInitiationFinishedTime=time
  lastInitiationTime=time pendingWorkersRollouts=[PendingWorkersRollouts] phase
EtcdEncryptionKey2: autoCompleteAfterPrepared=boolean lastCompletionTime=time lastCompletionTriggeredTime=time
  lastInitiationFinishedTime=time lastInitiationTime=time phase
Observability: lastCompletionTime=time lastInitiationTime=time
Rotation: certificateAuthorities=CertificateAuthorities etcdEncryptionKey=EtcdEncryptionKey2
  observability=Observability serviceAccountKey=CertificateAuthorities sshKeypair=Observability
Credentials2: encryptionAtRest=EncryptionConfig rotation=Rotation
PendingWorkerUpdates: autoInPlaceUpdate=[string] manualInPlaceUpdate=[string]
InPlaceUpdates2: pendingWorkerUpdates=PendingWorkerUpdates
LastMaintenance: description failureReason state triggeredTime=time
LiveMigration: conditions=[Conditions]
ManualWorkerPoolRollout: pendingWorkersRollouts=[PendingWorkersRollouts]
Networking2: egressCIDRs=[string] nodes=[string] pods=[string] services=[string]
Status8: advertisedAddresses=[AdvertisedAddresses] clusterIdentity conditions=[Conditions] constraints=[Conditions]
  credentials=Credentials2 gardener=Gardener hibernated=boolean inPlaceUpdates=InPlaceUpdates2 lastErrors=[LastError]
  lastHibernationTriggerTime=time lastMaintenance=LastMaintenance lastOperation=LastOperation
  liveMigration=LiveMigration manualWorkerPoolRollout=ManualWorkerPoolRollout migrationStartTime=time
  networking=Networking2 observedGeneration=integer retryCycleStartTime=time seedName technicalID uid
core.gardener.cloud/v1beta1/Shoot: apiVersion kind metadata=Metadata spec=Spec10 status=Status8
Extensions2: kind name purpose resources=[Resources2] state=open
Gardener2: data=open labels={string} name type
Resources4: apiVersion data=open kind name
Spec11: extensions=[Extensions2] gardener=[Gardener2] resources=[Resources4]
core.gardener.cloud/v1beta1/ShootState: apiVersion kind metadata=Metadata spec=Spec11
IpBlock: cidr except=[string]
Ingress2: ipBlock=IpBlock
Spec12: ingress=[Ingress2] providerType seedName shootRef=MachineType sshPublicKey
Ports: error port=integer protocol
Ingress3: hostname ip ipMode ports=[Ports]
Status9: conditions=[Conditions] expirationTimestamp=time ingress=Ingress3 lastHeartbeatTimestamp=time
  observedGeneration=integer
operations.gardener.cloud/v1alpha1/Bastion: apiVersion kind metadata=Metadata spec=Spec12 status=Status9
security.gardener.cloud/v1alpha1/CredentialsBinding: apiVersion credentialsRef=CredentialsRef kind metadata=Metadata
  provider=Provider2 quotas=[CredentialsRef]
AdditionalVolumeMounts: mountPath mountPropagation name readOnly=boolean recursiveReadOnly subPath subPathExpr
AwsElasticBlockStore: fsType partition=integer readOnly=boolean volumeID
AzureDisk: cachingMode diskName diskURI fsType kind readOnly=boolean
AzureFile: readOnly=boolean secretName shareName
Cephfs: monitors=[string] path readOnly=boolean secretFile secretRef=MachineType user
Cinder: fsType readOnly=boolean secretRef=MachineType volumeID
Items: key mode=integer path
ConfigMap: defaultMode=integer items=[Items] name optional=boolean
Csi: driver fsType nodePublishSecretRef=MachineType readOnly=boolean volumeAttributes={string}
FieldRef: apiVersion fieldPath
ResourceFieldRef: containerName divisor=quantity resource
Items2: fieldRef=FieldRef mode=integer path resourceFieldRef=ResourceFieldRef
DownwardAPI: defaultMode=integer items=[Items2]
EmptyDir: medium sizeLimit=quantity
DataSource: apiGroup kind name
Resources5: limits={quantity} requests={quantity}
Spec13: accessModes=[string] dataSource=DataSource dataSourceRef=CreatedBy resources=Resources5 selector=SeedSelector2
  storageClassName volumeAttributesClassName volumeMode volumeName
VolumeClaimTemplate: metadata=Metadata spec=Spec13
Ephemeral: volumeClaimTemplate=VolumeClaimTemplate
Fc: fsType lun=integer readOnly=boolean targetWWNs=[string] wwids=[string]
FlexVolume: driver fsType options={string} readOnly=boolean secretRef=MachineType
Flocker: datasetName datasetUUID
GcePersistentDisk: fsType partition=integer pdName readOnly=boolean
GitRepo: directory repository revision
Glusterfs: endpoints path readOnly=boolean
HostPath: path type
Image2: pullPolicy reference
Iscsi: chapAuthDiscovery=boolean chapAuthSession=boolean fsType initiatorName iqn iscsiInterface lun=integer
  portals=[string] readOnly=boolean secretRef=MachineType targetPortal
Nfs: path readOnly=boolean server
PersistentVolumeClaim: claimName readOnly=boolean
PhotonPersistentDisk: fsType pdID
PortworxVolume: fsType readOnly=boolean volumeID
ClusterTrustBundle: labelSelector=SeedSelector2 name optional=boolean path signerName
ConfigMap2: items=[Items] name optional=boolean
DownwardAPI2: items=[Items2]
PodCertificate: certificateChainPath credentialBundlePath keyPath keyType maxExpirationSeconds=integer signerName
  userAnnotations={string}
ServiceAccountToken: audience expirationSeconds=integer path
Sources: clusterTrustBundle=ClusterTrustBundle configMap=ConfigMap2 downwardAPI=DownwardAPI2
  podCertificate=PodCertificate secret=ConfigMap2 serviceAccountToken=ServiceAccountToken
Projected: defaultMode=integer sources=[Sources]
Quobyte: group readOnly=boolean registry tenant user volume
Rbd: fsType image keyring monitors=[string] pool readOnly=boolean secretRef=MachineType user
ScaleIO: fsType gateway protectionDomain readOnly=boolean secretRef=MachineType sslEnabled=boolean storageMode
  storagePool system volumeName
Secret: defaultMode=integer items=[Items] optional=boolean secretName
Storageos: fsType readOnly=boolean secretRef=MachineType volumeName volumeNamespace
VsphereVolume: fsType storagePolicyID storagePolicyName volumePath
AdditionalVolumes: awsElasticBlockStore=AwsElasticBlockStore azureDisk=AzureDisk azureFile=AzureFile cephfs=Cephfs
  cinder=Cinder configMap=ConfigMap csi=Csi downwardAPI=DownwardAPI emptyDir=EmptyDir ephemeral=Ephemeral fc=Fc
  flexVolume=FlexVolume flocker=Flocker gcePersistentDisk=GcePersistentDisk gitRepo=GitRepo glusterfs=Glusterfs
  hostPath=HostPath image=Image2 iscsi=Iscsi name nfs=Nfs persistentVolumeClaim=PersistentVolumeClaim
  photonPersistentDisk=PhotonPersistentDisk portworxVolume=PortworxVolume projected=Projected quobyte=Quobyte rbd=Rbd
  scaleIO=ScaleIO secret=Secret storageos=Storageos vsphereVolume=VsphereVolume
ConfigMapKeyRef: key name optional=boolean
FileKeyRef: key optional=boolean path volumeName
ValueFrom: configMapKeyRef=ConfigMapKeyRef fieldRef=FieldRef fileKeyRef=FileKeyRef resourceFieldRef=ResourceFieldRef
  secretKeyRef=ConfigMapKeyRef
Env: name value valueFrom=ValueFrom
OciRepository: caBundleSecretRef=MachineType digest pullSecretRef=MachineType ref repository tag
Helm: ociRepository=OciRepository
Image3: pullPolicy ref repository tag
Claims: name request
Resources6: claims=[Claims] limits={quantity} requests={quantity}
Deployment2: additionalVolumeMounts=[AdditionalVolumeMounts] additionalVolumes=[AdditionalVolumes]
  componentImageVectorOverwrite enableHealthProbes=boolean env=[Env] helm=Helm image=Image3 imageVectorOverwrite
  podAnnotations={string} podLabels={string} replicaCount=integer resources=Resources6 revisionHistoryLimit=integer
  serviceAccountName tolerations=[Tolerations3]
Spec14: config=open deployment=Deployment2 kubeconfigSecretRef=MachineType
Status10: conditions=[Conditions] observedGeneration=integer
seedmanagement.gardener.cloud/v1alpha1/Gardenlet: apiVersion kind metadata=Metadata spec=Spec14 status=Status10
Deployment3: additionalVolumeMounts=[AdditionalVolumeMounts] additionalVolumes=[AdditionalVolumes]
  enableHealthProbes=boolean env=[Env] image=Image3 podAnnotations={string} podLabels={string} replicaCount=integer
  resources=Resources6 revisionHistoryLimit=integer serviceAccountName tolerations=[Tolerations3]
Gardenlet: bootstrap config=open deployment=Deployment3 mergeWithParent=boolean
Spec15: gardenlet=Gardenlet shoot=MachineType
seedmanagement.gardener.cloud/v1alpha1/ManagedSeed: apiVersion kind metadata=Metadata spec=Spec15 status=Status10
ShootTemplate: metadata=Metadata spec=Spec10
Template: metadata=Metadata spec=Spec15
RollingUpdate: partition=integer
UpdateStrategy: rollingUpdate=RollingUpdate type
Spec16: replicas=integer revisionHistoryLimit=integer selector=SeedSelector2 shootTemplate=ShootTemplate
  template=Template updateStrategy=UpdateStrategy
PendingReplica: name reason retries=integer since=time
Status11: collisionCount=integer conditions=[Conditions] currentReplicas=integer currentRevision
  nextReplicaNumber=integer observedGeneration=integer pendingReplica=PendingReplica readyReplicas=integer
  replicas=integer updateRevision updatedReplicas=integer
seedmanagement.gardener.cloud/v1alpha1/ManagedSeedSet: apiVersion kind metadata=Metadata spec=Spec16 status=Status11
"""
