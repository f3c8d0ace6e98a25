"""Graph of what a seed's gardenlet may read: objects that a path of references leads to from its Seed.

    Seed ◄── Shoot (spec.seedName or status.seedName) ──► ShootState, Namespace, Project, CloudProfile, ExposureClass,
      │        │                                           Secrets and ConfigMaps that it names, or are called after it
      │        ├──► SecretBinding, CredentialsBinding ──► Secret, WorkloadIdentity, Quotas
      │        └──► NamespacedCloudProfile ──► CloudProfile
      │      Shoot ◄── ManagedSeed ──► the Seed that it makes, and what that one's configuration names
      ├──► Secrets and ConfigMaps that it names
      ├◄── BackupBucket ──► the Secret with credentials that were generated for it
      ├◄── BackupEntry
      └◄── ControllerInstallation ──► ControllerDeployment, and the Lease of its heartbeat

Source: Gardener's seed authorizer (pkg/admissioncontroller/webhook/auth/seed/graph).
"""

from collections.abc import Collection, Iterator, Mapping

from gardenbus.apiserver.domain.managed_seeds import shoot_key
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, only_text
from gardenbus.common.api.garden.named_references import REFERENCED_KINDS
from gardenbus.common.api.garden.profile_parts import binding_keys, profile_key
from gardenbus.common.api.keys import GARDEN_NAMESPACE, LEASE_NAMESPACE, ObjectKey, seed_namespace

FOLLOWED_KINDS = frozenset({"secretbinding", "credentialsbinding", "namespacedcloudprofile"})
"""Kinds between a Shoot and what it needs: they have to be read for their own references."""

_CALLED_AFTER_SHOOTS: Mapping[str, tuple[str, ...]] = {
    "secret": (".kubeconfig", ".ca-cluster", ".ssh-keypair", ".ssh-keypair.old", ".monitoring"),
    "internalsecret": (".ca-client",),
    "configmap": (".ca-cluster", ".ca-kubelet"),
}
"""Ends of the names of what gardenlets of Gardener keep beside a shoot. Source: `pkg/utils/gardener/shoot.go`."""

_REFERABLE = frozenset({"secret", "configmap", "workloadidentity", "internalsecret"})


def is_in_own_namespace(key: ObjectKey, seed: str) -> bool:
    """True for the namespace of a seed in the garden, and for the Secrets there."""
    own = seed_namespace(seed)
    return key == ObjectKey("namespace", "", own) or (key.kind == "secret" and key.namespace == own)


def own_keys(seed: str) -> Collection[ObjectKey]:
    """The objects that are a gardenlet's own, whatever is on its seed."""
    return (
        ObjectKey("seed", "", seed),
        ObjectKey("lease", LEASE_NAMESPACE, seed),
        ObjectKey("gardenlet", GARDEN_NAMESPACE, seed),
    )


def shoot_called_after(key: ObjectKey) -> ObjectKey | None:
    """The shoot that an object is called after, as `apollo` of a Secret `apollo.kubeconfig`."""
    for end in _CALLED_AFTER_SHOOTS.get(key.kind, ()):
        if key.name.endswith(end):
            return ObjectKey("shoot", key.namespace, key.name.removesuffix(end))
    return None


def references_of(key: ObjectKey, document: Document) -> Iterator[ObjectKey]:
    """The objects that an object leads to, in the direction of the paths."""
    spec = section(document, "spec")
    match key.kind:
        case "shoot":
            yield from _of_shoot(key, spec)
        case "secretbinding":
            yield from _referred(section(document, "secretRef"), key.namespace, default="secret")
            yield from _quotas(document, key.namespace)
        case "credentialsbinding":
            yield from _referred(section(document, "credentialsRef"), key.namespace)
            yield from _quotas(document, key.namespace)
        case "namespacedcloudprofile":
            yield ObjectKey("cloudprofile", "", only_text(section(spec, "parent").get("name")))
        case "managedseed":
            yield ObjectKey("seed", "", key.name)
            yield ObjectKey("lease", LEASE_NAMESPACE, key.name)
            yield from _of_seed(section(spec, "gardenlet", "config", "seedConfig", "spec"))
        case "seed":
            yield from _of_seed(spec)
        case _:
            pass


def is_of_seed(key: ObjectKey, document: Document, seed: str) -> bool:
    """True for an object that names the seed itself: a Shoot, BackupBucket, BackupEntry, Bastion, installation."""
    if key.kind not in ("shoot", "backupbucket", "backupentry", "bastion", "controllerinstallation"):
        return False
    names = (
        section(document, "spec").get("seedName"),
        section(document, "status").get("seedName"),
        section(document, "spec", "seedRef").get("name"),
    )
    return seed in names


def is_deployed_by(installation: Document, deployment: ObjectKey) -> bool:
    """True when a ControllerInstallation names this ControllerDeployment."""
    return section(installation, "spec", "deploymentRef").get("name") == deployment.name


def is_hosted(managed_seed: Document, shoots: Collection[ObjectKey]) -> bool:
    """True when the Shoot of a ManagedSeed is one of these."""
    return shoot_key(managed_seed) in shoots


def _of_shoot(key: ObjectKey, spec: Document) -> Iterator[ObjectKey]:
    namespace = key.namespace
    yield ObjectKey("shootstate", namespace, key.name)
    yield ObjectKey("namespace", "", namespace)
    if profile := profile_key(spec, namespace):
        yield profile
    yield from binding_keys(spec, namespace)
    if exposure := only_text(spec.get("exposureClassName")):
        yield ObjectKey("exposureclass", "", exposure)
    for resource in mappings(spec.get("resources")):
        yield from _in_namespace(section(resource, "resourceRef"), namespace)
    for provider in mappings(section(spec, "dns").get("providers")):
        yield from _named("secret", namespace, provider.get("secretName"))
        yield from _in_namespace(section(provider, "credentialsRef"), namespace)
    yield from _of_kube_apiserver(section(spec, "kubernetes", "kubeAPIServer"), namespace)


def _of_kube_apiserver(settings: Document, namespace: str) -> Iterator[ObjectKey]:
    policy = section(settings, "auditConfig", "auditPolicy", "configMapRef")
    yield from _named("configmap", namespace, policy.get("name"))
    for plugin in mappings(settings.get("admissionPlugins")):
        yield from _named("secret", namespace, plugin.get("kubeconfigSecretName"))
    authorization = section(settings, "structuredAuthorization")
    for part in (section(settings, "structuredAuthentication"), authorization):
        yield from _named("configmap", namespace, part.get("configMapName"))
    for kubeconfig in mappings(authorization.get("kubeconfigs")):
        yield from _named("secret", namespace, kubeconfig.get("secretName"))


def _of_seed(spec: Document) -> Iterator[ObjectKey]:
    """References of a Seed within `garden`: a gardenlet writes its own Seed, and could name any project's Secret."""
    dns = section(spec, "dns")
    parts = (section(spec, "backup"), section(dns, "provider"), section(dns, "internal"))
    for part in (*parts, *mappings(dns.get("defaults"))):
        found = [
            *_referred(section(part, "credentialsRef"), GARDEN_NAMESPACE),
            *_referred(section(part, "secretRef"), GARDEN_NAMESPACE, default="secret"),
        ]
        yield from (key for key in found if key.namespace == GARDEN_NAMESPACE)
    for resource in mappings(spec.get("resources")):
        yield from _in_namespace(section(resource, "resourceRef"), GARDEN_NAMESPACE)


def _quotas(binding: Document, namespace: str) -> Iterator[ObjectKey]:
    for quota in mappings(binding.get("quotas")):
        yield from _named("quota", only_text(quota.get("namespace")) or namespace, quota.get("name"))


def _referred(reference: Document, namespace: str, default: str = "") -> Iterator[ObjectKey]:
    """The object of a reference with `kind` and `namespace`; both may be left out."""
    kind = only_text(reference.get("kind")).lower() or default
    if kind in _REFERABLE:
        yield from _named(kind, only_text(reference.get("namespace")) or namespace, reference.get("name"))


def _in_namespace(reference: Document, namespace: str) -> Iterator[ObjectKey]:
    """The object of a reference that cannot leave the namespace, of a kind that Shoots and Seeds may name."""
    kind = only_text(reference.get("kind")).lower()
    if kind in REFERENCED_KINDS:
        yield from _named(kind, namespace, reference.get("name"))


def _named(kind: str, namespace: str, name: object) -> Iterator[ObjectKey]:
    if isinstance(name, str) and name:
        yield ObjectKey(kind, namespace, name)
