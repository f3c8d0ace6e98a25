"""Registry of kinds: names, groups and scopes, and which of them are validated and have an effect.

A kind's lower-case singular is part of every key and subject, so a word belongs to one group: a manifest with an
understood word in another group is rejected.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from gardenbus.common.api.shown_values import with_article
from gardenbus.common.errors import Unsupported

CORE = "core.gardener.cloud"
SEED_MANAGEMENT = "seedmanagement.gardener.cloud"
SECURITY = "security.gardener.cloud"
OPERATIONS = "operations.gardener.cloud"
SETTINGS = "settings.gardener.cloud"
EXTENSIONS = "extensions.gardener.cloud"
RESOURCES = "resources.gardener.cloud"
OPERATOR = "operator.gardener.cloud"
COORDINATION = "coordination.k8s.io"
CERTIFICATES = "certificates.k8s.io"
PLACEMENT = "placement.kubernetes-fleet.io"
CLUSTER = "cluster.kubernetes-fleet.io"
APPS = "apps"
BATCH = "batch"
RBAC = "rbac.authorization.k8s.io"
NETWORKING = "networking.k8s.io"
POLICY = "policy"
AUTOSCALING = "autoscaling"
STORAGE = "storage.k8s.io"
API_EXTENSIONS = "apiextensions.k8s.io"

CARRIED_GROUPS = (APPS, BATCH, RBAC, NETWORKING, POLICY, AUTOSCALING, STORAGE, API_EXTENSIONS)
"""Kubernetes' groups whose objects are kept for placements to take them to clusters: nothing here runs them."""

GROUPS = frozenset(
    {
        "",
        COORDINATION,
        CERTIFICATES,
        PLACEMENT,
        CLUSTER,
        *CARRIED_GROUPS,
        CORE,
        SEED_MANAGEMENT,
        SECURITY,
        OPERATIONS,
        SETTINGS,
        EXTENSIONS,
        RESOURCES,
        OPERATOR,
        "authentication.gardener.cloud",
        "dashboard.gardener.cloud",
        "druid.gardener.cloud",
        "dns.gardener.cloud",
        "cert.gardener.cloud",
    }
)
"""Groups whose objects are accepted; "" is Kubernetes' core group (`v1`)."""

_registered_groups: set[str] = set()

REVISION_KIND = "ControllerRevision"

_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_VERSION = re.compile(r"v[1-9][0-9]{0,2}((alpha|beta)[1-9][0-9]{0,2})?")


class KindSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A kind. `namespaced` is None for unregistered kinds: then the manifest decides.

    `understood`: its fields are validated and have an effect. `has_spec`: its content is below `spec` (a ConfigMap's is
    not).
    """

    kind: str
    singular: str
    plural: str
    short_names: tuple[str, ...] = ()
    group: str
    version: str
    namespaced: bool | None
    understood: bool = False
    has_spec: bool = True

    @property
    def api_version(self) -> str:
        """`<group>/<version>`, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified_singular(self) -> str:
        """`shoot.core.gardener.cloud`, as `-o name` prints; the singular alone in the core group."""
        return f"{self.singular}.{self.group}" if self.group else self.singular

    @property
    def qualified_plural(self) -> str:
        """`shoots.core.gardener.cloud`; the plural alone in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _plural(singular: str) -> str:
    if singular.endswith(("s", "x", "ch")):
        return singular + "es"
    return singular[:-1] + "ies" if singular.endswith("y") else singular + "s"


def _kind(
    kind: str,
    api_version: str,
    *short_names: str,
    namespaced: bool = True,
    understood: bool = False,
    has_spec: bool = True,
) -> KindSpec:
    group, _, version = api_version.rpartition("/")
    return KindSpec(
        kind=kind,
        singular=kind.lower(),
        plural=_plural(kind.lower()),
        short_names=short_names,
        group=group,
        version=version,
        namespaced=namespaced,
        understood=understood,
        has_spec=has_spec,
    )


_CORE_V1BETA1 = f"{CORE}/v1beta1"
_SEED_MANAGEMENT_V1ALPHA1 = f"{SEED_MANAGEMENT}/v1alpha1"
_PLACEMENT_V1BETA1 = f"{PLACEMENT}/v1beta1"

_UNDERSTOOD = (
    _kind("Shoot", _CORE_V1BETA1, "sh", understood=True),
    _kind("Seed", _CORE_V1BETA1, "sd", namespaced=False, understood=True),
    _kind("CloudProfile", _CORE_V1BETA1, "cp", "cprofile", "cpfl", namespaced=False, understood=True),
    _kind("NamespacedCloudProfile", _CORE_V1BETA1, "ncp", "ncprofile", "ncpfl", "nsprofile", "nscpfl", understood=True),
    _kind("Project", _CORE_V1BETA1, namespaced=False, understood=True),
    _kind(
        "ExposureClass", _CORE_V1BETA1, "expclass", "expcls", "exc", namespaced=False, understood=True, has_spec=False
    ),
    _kind("ShootState", _CORE_V1BETA1, understood=True),
    _kind("ManagedSeed", _SEED_MANAGEMENT_V1ALPHA1, "ms", understood=True),
    _kind("ManagedSeedSet", _SEED_MANAGEMENT_V1ALPHA1, "mss", understood=True),
    _kind("SeedAutoscaler", _SEED_MANAGEMENT_V1ALPHA1, "sas", understood=True),
    _kind("MemberCluster", f"{CLUSTER}/v1beta1", "mcl", namespaced=False, understood=True),
    _kind("ClusterResourcePlacement", _PLACEMENT_V1BETA1, "crp", namespaced=False, understood=True),
    _kind("ResourcePlacement", _PLACEMENT_V1BETA1, "rp", understood=True),
    _kind("ClusterSchedulingPolicySnapshot", _PLACEMENT_V1BETA1, "csps", namespaced=False, understood=True),
    _kind("SchedulingPolicySnapshot", _PLACEMENT_V1BETA1, "sps", understood=True),
    _kind("ClusterResourceSnapshot", _PLACEMENT_V1BETA1, "crs", namespaced=False, understood=True),
    _kind("ResourceSnapshot", _PLACEMENT_V1BETA1, "rss", understood=True),
    _kind("ClusterResourceBinding", _PLACEMENT_V1BETA1, "crb", namespaced=False, understood=True),
    _kind("ResourceBinding", _PLACEMENT_V1BETA1, "rb", understood=True),
    _kind("ClusterResourcePlacementEviction", _PLACEMENT_V1BETA1, "crpe", namespaced=False, understood=True),
    _kind("ClusterResourcePlacementDisruptionBudget", _PLACEMENT_V1BETA1, "crpdb", namespaced=False, understood=True),
    _kind("Work", _PLACEMENT_V1BETA1, understood=True),
    _kind("ClusterResourceEnvelope", _PLACEMENT_V1BETA1, namespaced=False, understood=True, has_spec=False),
    _kind("ResourceEnvelope", _PLACEMENT_V1BETA1, understood=True, has_spec=False),
    _kind("ClusterResourceOverride", _PLACEMENT_V1BETA1, "cro", namespaced=False, understood=True),
    _kind("ResourceOverride", _PLACEMENT_V1BETA1, "ro", understood=True),
    _kind("ClusterResourceOverrideSnapshot", _PLACEMENT_V1BETA1, "cros", namespaced=False, understood=True),
    _kind("ResourceOverrideSnapshot", _PLACEMENT_V1BETA1, "ros", understood=True),
    _kind("Namespace", "v1", "ns", namespaced=False, understood=True),
    _kind("ConfigMap", "v1", "cm", understood=True, has_spec=False),
    _kind("Secret", "v1", understood=True, has_spec=False),
    _kind("Event", "v1", "ev", understood=True, has_spec=False),
    _kind("Lease", f"{COORDINATION}/v1", understood=True),
    _kind("CertificateSigningRequest", f"{CERTIFICATES}/v1", "csr", namespaced=False, understood=True),
)

_STORED = (
    _kind(REVISION_KIND, f"{APPS}/v1", has_spec=False),
    _kind("BackupBucket", _CORE_V1BETA1, "bbc", namespaced=False),
    _kind("BackupEntry", _CORE_V1BETA1, "bec"),
    _kind("ControllerDeployment", f"{CORE}/v1", "ctrldeploy", namespaced=False, has_spec=False),
    _kind("ControllerInstallation", _CORE_V1BETA1, "ctrlinst", namespaced=False),
    _kind("ControllerRegistration", _CORE_V1BETA1, "ctrlreg", namespaced=False),
    _kind("Plant", _CORE_V1BETA1, "pl"),
    _kind("InternalSecret", _CORE_V1BETA1, "ins", has_spec=False),
    _kind("Quota", _CORE_V1BETA1, "squota"),
    _kind("SecretBinding", _CORE_V1BETA1, "sb", has_spec=False),
    _kind("CredentialsBinding", f"{SECURITY}/v1alpha1", "cb", has_spec=False),
    _kind("WorkloadIdentity", f"{SECURITY}/v1alpha1", "wi"),
    _kind("Gardenlet", _SEED_MANAGEMENT_V1ALPHA1, "gl", "glet"),
    _kind("Bastion", f"{OPERATIONS}/v1alpha1"),
    _kind("OpenIDConnectPreset", f"{SETTINGS}/v1alpha1", "oidcps"),
    _kind("ClusterOpenIDConnectPreset", f"{SETTINGS}/v1alpha1", "coidcps", namespaced=False),
    _kind("ManagedResource", f"{RESOURCES}/v1alpha1", "mr"),
    _kind("Garden", f"{OPERATOR}/v1alpha1", "grdn", namespaced=False),
    _kind("Cluster", f"{EXTENSIONS}/v1alpha1", namespaced=False),
    *(
        _kind(kind, f"{EXTENSIONS}/v1alpha1", *short_names)
        for kind, short_names in (
            ("ContainerRuntime", ("cr",)),
            ("ControlPlane", ()),
            ("DNSRecord", ("dns",)),
            ("Infrastructure", ("infra",)),
            ("Network", ()),
            ("OperatingSystemConfig", ("osc",)),
            ("Worker", ()),
        )
    ),
    _kind("PersistentVolume", "v1", "pv", namespaced=False),
    *(
        _kind(kind, "v1", *short_names)
        for kind, short_names in (
            ("LimitRange", ("limits",)),
            ("PersistentVolumeClaim", ("pvc",)),
            ("PodTemplate", ()),
            ("ReplicationController", ("rc",)),
            ("ResourceQuota", ()),
            ("Service", ("svc",)),
            ("ServiceAccount", ("sa",)),
        )
    ),
    *(
        _kind(kind, f"{APPS}/v1", short_name)
        for kind, short_name in (
            ("Deployment", "deploy"),
            ("StatefulSet", "sts"),
            ("DaemonSet", "ds"),
            ("ReplicaSet", "rs"),
        )
    ),
    _kind("Job", f"{BATCH}/v1"),
    _kind("CronJob", f"{BATCH}/v1", "cj"),
    _kind("Role", f"{RBAC}/v1", has_spec=False),
    _kind("RoleBinding", f"{RBAC}/v1", has_spec=False),
    _kind("ClusterRole", f"{RBAC}/v1", namespaced=False, has_spec=False),
    _kind("ClusterRoleBinding", f"{RBAC}/v1", namespaced=False, has_spec=False),
    _kind("Ingress", f"{NETWORKING}/v1", "ing"),
    _kind("IngressClass", f"{NETWORKING}/v1", namespaced=False),
    _kind("NetworkPolicy", f"{NETWORKING}/v1", "netpol"),
    _kind("PodDisruptionBudget", f"{POLICY}/v1", "pdb"),
    _kind("HorizontalPodAutoscaler", f"{AUTOSCALING}/v2", "hpa"),
    _kind("StorageClass", f"{STORAGE}/v1", "sc", namespaced=False, has_spec=False),
    _kind("CustomResourceDefinition", f"{API_EXTENSIONS}/v1", "crd", "crds", namespaced=False),
)

_ALSO_SERVED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("membercluster", "clusterresourceplacement", "resourceplacement", "work"), ("v1",)),
    **dict.fromkeys(("clusterschedulingpolicysnapshot", "clusterresourcesnapshot", "clusterresourcebinding"), ("v1",)),
    **dict.fromkeys(("clusterresourceoverride", "resourceoverride"), ("v1", "v1alpha1")),
    **dict.fromkeys(("clusterresourceoverridesnapshot", "resourceoverridesnapshot"), ("v1", "v1alpha1")),
    **dict.fromkeys(("clusterresourceplacementeviction", "clusterresourceplacementdisruptionbudget"), ("v1alpha1",)),
}
"""Further versions in which KubeFleet serves its kinds, field for field; objects are stored in that of the kind."""

_SCOPES_OF_CLUSTERS: Mapping[tuple[str, str], bool] = {
    **{("", kind): True for kind in ("Binding", "Endpoints", "Pod")},
    **{("", kind): False for kind in ("ComponentStatus", "Node")},
}
"""Kinds of Kubernetes' core that are no resource types here, and whether their objects have a namespace."""

_STORED_VERSIONS: Mapping[tuple[str, str], str] = {
    (f"{spec.group}/{version}", spec.kind): spec.api_version
    for spec in _UNDERSTOOD
    for version in _ALSO_SERVED.get(spec.singular, ())
}

KINDS: Mapping[str, KindSpec] = {spec.singular: spec for spec in (*_UNDERSTOOD, *_STORED)}
"""Registered kinds by singular."""

_CARRIERS = frozenset({
    "work", "clusterresourcesnapshot", "resourcesnapshot", "clusterresourceenvelope", "resourceenvelope",
    "clusterresourceoverride", "resourceoverride", "clusterresourceoverridesnapshot", "resourceoverridesnapshot",
})  # fmt: skip
"""Kinds that hold other objects, or parts of them, which may be Secrets."""

CONFIDENTIAL = frozenset({"secret", "internalsecret", "shootstate"}) | _CARRIERS
"""Kinds that hold credentials: they, and announcements of them, go to those alone who need what is in them."""

SHOWN = tuple(
    sorted(
        singular
        for singular, spec in KINDS.items()
        if singular in ("namespace", "configmap")
        or (spec.group not in ("", COORDINATION, EXTENSIONS, *CARRIED_GROUPS) and singular not in CONFIDENTIAL)
    )
)
"""Kinds whose announcements the dashboard follows; it reads objects of any other from the API."""

_WORDS: Mapping[str, KindSpec] = {
    word: spec
    for spec in reversed((*_UNDERSTOOD, *_STORED))
    for word in (*spec.short_names, spec.plural, spec.singular)
}

_NEAR = 0.8
"""Similarity (of difflib) from which on a word may have been meant: one letter of five or six is wrong."""

_NEAR_WORDS = [word for spec in (*_UNDERSTOOD, *_STORED) for word in (spec.plural, spec.singular)]
"""Words proposed in the place of another; short names resemble everything that is short."""


def resolve(api_version: str, kind: str) -> KindSpec:
    """Kind of a manifest.

    An unregistered kind of a registered group has `understood` False, and `namespaced` None unless it is Kubernetes'.
    Raises Unsupported, naming the field, for an unknown group, a word that is no kind, a version of an understood kind
    that is not served, an understood word in another group, and a probable typing error.
    """
    group, _, version = api_version.rpartition("/")
    if group not in GROUPS and group not in _registered_groups:
        raise Unsupported(_unknown_group(api_version, group, kind))
    if not _VERSION.fullmatch(version):
        raise Unsupported(f"apiVersion: {api_version[:80]!r} has no version as v1 or v1beta1 at its end")
    if not _KIND.fullmatch(kind):
        raise Unsupported(f"kind: {kind[:80]!r} is not a kind: write it in CamelCase, as Shoot")
    registered = KINDS.get(kind.lower())
    if registered is not None and registered.understood:
        if kind != registered.kind or api_version != registered.api_version:
            field = "apiVersion" if api_version != registered.api_version else "kind"
            raise Unsupported(
                f"{field}: {kind} of {api_version} is not known here: write apiVersion: {registered.api_version}, "
                f"kind: {registered.kind}"
            )
        return registered
    if registered is not None and registered.group == group and registered.kind == kind:
        return msgspec.structs.replace(registered, version=version)
    if meant := _slip_of(kind, group):
        raise Unsupported(f"kind: {kind} of {api_version} is not known here; did you mean {meant}?")
    singular = kind.lower()
    return KindSpec(
        kind=kind,
        singular=singular,
        plural=_plural(singular),
        group=group,
        version=version,
        namespaced=_SCOPES_OF_CLUSTERS.get((group, kind)),
    )


def in_stored_version(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest in the version in which its kind is stored."""
    served, kind = manifest.get("apiVersion"), manifest.get("kind")
    stored = _STORED_VERSIONS.get((served, kind)) if isinstance(served, str) and isinstance(kind, str) else None
    return {**manifest, "apiVersion": stored} if stored else manifest


def unregistered_kind(kind: str, api_version: str, *, is_namespaced: bool) -> KindSpec:
    """A kind that is only stored, as an object of it names it."""
    return _kind(kind, api_version, namespaced=is_namespaced)


def _slip_of(kind: str, group: str) -> str:
    """The understood kind of the same group with a similar name; "" without one."""
    close = get_close_matches(kind, [spec.kind for spec in _UNDERSTOOD if spec.group == group], n=1, cutoff=0.85)
    return close[0] if close and abs(len(close[0]) - len(kind)) <= 1 else ""


UNKNOWN_KIND = "kind: the server doesn't have a resource type"
"""Beginning of the message about a word that names no kind."""


def ending_alike(word: str) -> list[str]:
    """Plurals of the understood kinds whose names end in this whole word, as `ResourcePlacements` in `placements`."""
    plural = word if word.endswith("s") else _plural(word)
    ending = plural[:1].upper() + plural[1:]
    camel = {spec.plural: spec.kind + spec.plural[len(spec.kind) :] for spec in _UNDERSTOOD}
    return sorted(name for name, written in camel.items() if written.endswith(ending) and name != plural)


_NAMED = ("shoots", "seeds", "projects", "quotas")
"""Kinds that are named where none resembles a word."""


def by_word(word: str, stored: Iterable[str] = ()) -> KindSpec:
    """Kind by one of its names: `shoots`, `Shoot`, `shoot`, `cp`.

    `stored` are singulars of kinds with stored objects, also unregistered ones. Raises Unsupported, with suggestions,
    for any other word.
    """
    folded = word.lower()
    if spec := _WORDS.get(folded):
        return spec
    for singular in stored:
        if folded in (singular, _plural(singular)):
            return KindSpec(
                kind=singular, singular=singular, plural=_plural(singular), group="", version="", namespaced=None
            )
    close = ending_alike(folded) or get_close_matches(folded[:80], _NEAR_WORDS, n=1, cutoff=_NEAR)
    some = ", ".join(_NAMED)
    others = f"`gardenbus api-resources` lists {some} and {len(KINDS) - len(_NAMED)} others"
    hint = f"did you mean {' or '.join(close)}?" if close else others
    raise Unsupported(f'{UNKNOWN_KIND} "{word[:80]}"; {hint}')


def by_qualified_word(text: str, stored: Iterable[str] = ()) -> KindSpec:
    """Kind by one of its names, or as kubectl writes it with its group: `<name>[.<version>].<group>` (core: `v1.`).

    The kind is in the version that is named, where it is served in several. Raises Unsupported as `by_word` does, and
    for a group or version that the kind is not of. Of a kind whose fields have no effect any version of a known group
    is taken, as `resolve` takes its manifests.
    """
    word, dot, qualifier = text.partition(".")
    spec = by_word(word, stored)
    if not dot:
        return spec
    version, group = _version_and_group(qualifier.lower())
    if not spec.understood and group in GROUPS:
        return spec
    also_served = _ALSO_SERVED.get(spec.singular, ())
    if group != spec.group or version not in ("", spec.version, *also_served):
        raise Unsupported(f"kind: {text[:120]!r} is not known here; did you mean {spec.qualified_plural}?")
    return msgspec.structs.replace(spec, version=version) if version in also_served else spec


def _version_and_group(qualifier: str) -> tuple[str, str]:
    """`v1beta1.core.gardener.cloud` in two; version "" where there is none."""
    version, _, group = qualifier.partition(".")
    return (version, group) if _VERSION.fullmatch(version) else ("", qualifier)


def register_groups(groups: Iterable[str]) -> None:
    """Accept the objects of more groups in this process: once, when it starts. Raises Unsupported for what is none."""
    given = frozenset(groups)
    if wrong := sorted(group for group in given if not _GROUP.fullmatch(group)):
        raise Unsupported(f"{wrong[0][:80]!r} is no group: write it as example.com")
    _registered_groups.update(given)


def understood_kinds() -> tuple[KindSpec, ...]:
    """The kinds whose fields are validated and have an effect."""
    return _UNDERSTOOD


def _unknown_group(api_version: str, group: str, kind: str) -> str:
    if group.endswith((".config.gardener.cloud", ".admission.gardener.cloud", ".config.k8s.io")):
        return f"apiVersion: {api_version[:120]} is the configuration file of a component, not an object to be stored"
    registered = KINDS.get(kind.lower())
    if registered is not None and registered.understood and registered.kind == kind:
        return (
            f"apiVersion: the group {group[:120]!r} is not known here: for {with_article(kind)} write"
            f" {registered.api_version}, or have the apiserver accept the group, in GARDENBUS_GROUPS"
        )
    gardener = ", ".join(sorted(name.removesuffix(".gardener.cloud") for name in GROUPS if "gardener" in name))
    fleet, kubernetes = f"{PLACEMENT}, {CLUSTER}", ", ".join((*CARRIED_GROUPS, COORDINATION, CERTIFICATES))
    return (
        f"apiVersion: the group {group[:120]!r} is not known here: use one of Gardener's ({gardener} .gardener.cloud), "
        f"of KubeFleet's ({fleet}) or of Kubernetes' ({kubernetes}, or v1), or have the apiserver accept it, in "
        "GARDENBUS_GROUPS"
    )
