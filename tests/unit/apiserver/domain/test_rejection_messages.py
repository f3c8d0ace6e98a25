"""Every rejection that an admission plug-in declares is given in some case, and none is given that is not declared."""

import ast
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import gardenbus.apiserver.domain
from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.authorization.actions import Permit, Requester
from gardenbus.apiserver.domain.authorization.custom_verbs import check_verbs
from gardenbus.apiserver.domain.plugins import resource_size
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin
from gardenbus.apiserver.domain.plugins.table import PLUGINS
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.use_as_seed import MADE_FROM, MADE_FROM_ANNOTATION
from gardenbus.common.api.configuration.resource_sizes import ResourceSizes, SizeLimit
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_requirements import REQUIREMENTS, RESOLVED
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden, InvalidResource
from tests.support.builders import (
    CORE,
    a_cloudprofile,
    a_managed_seed,
    a_namespaced_cloudprofile,
    a_project,
    a_seed,
    a_shoot,
    merged,
    resolved_as,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
STORED: Document = {"metadata": {"resourceVersion": "7", "uid": "u-1"}}
DELETING: Document = {"metadata": {"deletionTimestamp": "2026-05-01T00:00:00Z"}}
SEED_MANAGEMENT = "seedmanagement.gardener.cloud/v1alpha1"
SECURITY = "security.gardener.cloud/v1alpha1"
FLEET = "placement.kubernetes-fleet.io/v1beta1"
USE_AS_SEED = "shoot.gardener.cloud/use-as-seed"
EXPIRATION = "shoot.gardener.cloud/expiration-timestamp"
LARGE = resource_size.plugin(
    ResourceSizes(
        limits=(
            SizeLimit(api_groups=("*",), api_versions=("*",), resources=("secrets",), size=10),
            SizeLimit(api_groups=("*",), api_versions=("*",), resources=("shoots",), count=10),
        )
    )
)


class Case(NamedTuple):
    """A request of `ann`; `deleted`: to delete what is stored."""

    plugin: str
    document: Document
    old: Document | None = None
    related: RelatedObjects = RelatedObjects()
    deleted: bool = False
    user: str = "ann"


def key_of(document: Document) -> ObjectKey:
    metadata = document["metadata"]
    return ObjectKey(document["kind"].lower(), metadata.get("namespace") or "", metadata["name"])


def related(*documents: Document, **others: Any) -> RelatedObjects:
    return RelatedObjects(objects={key_of(each): each for each in documents}, **others)


def an_object(kind: str, name: str = "one", namespace: str = "", version: str = CORE, **fields: Any) -> Document:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return merged({"apiVersion": version, "kind": kind, "metadata": metadata}, fields)


def placed(**changes: Any) -> Document:
    return merged(a_shoot(spec={"seedName": "aws-eu1"}), changes)


def of_version(version: str, pool: str | None = None) -> Document:
    worker = {"name": "pool-a", "maximum": 1, **({"kubernetes": {"version": pool}} if pool else {})}
    return a_shoot(spec={"kubernetes": {"version": version}, "provider": {"workers": [worker]}})


def a_child(**changes: Any) -> Document:
    autoscaler = {"verticalPodAutoscaler": {"enabled": True}}
    spec = {"dns": {"domain": "child.example.org"}, "kubernetes": autoscaler, "seedName": "aws-eu1"}
    return merged(a_shoot("child", "garden", spec=spec, **STORED), changes)


def a_small_seed(**spec: Any) -> Document:
    return an_object(
        "ManagedSeed",
        "child",
        "garden",
        SEED_MANAGEMENT,
        spec={"shoot": {"name": "child"}, "seedTemplate": {"spec": spec}},
    )


def annotated(**annotations: str) -> Document:
    return {"metadata": {"annotations": {name.replace("_", "-"): value for name, value in annotations.items()}}}


CHILD = a_child()
PROFILE = a_cloudprofile(**STORED)
TAINTED = a_seed(spec={"taints": [{"key": "x"}]})
BOUND: dict[str, Any] = {"projects": {"garden-dev": a_project()}}
SHOOTS_ON: dict[str, Any] = {"shoots_on": {"aws-eu1": [placed(spec={"dns": {"domain": "shop.example.org"}})]}}
DNS: Document = {"internal": {"domain": "i.example.org"}, "defaults": [{"domain": "example.org"}]}
WITH_DNS = a_seed(spec={"dns": DNS})
OF_SECRET = an_object(
    "SecretBinding",
    "key",
    "garden-dev",
    secretRef={"name": "key"},
    quotas=[{"name": "q", "namespace": "garden"}],
    **STORED,
)
QUOTA = an_object(
    "Quota",
    "q",
    "garden",
    spec={"scope": {"kind": "Secret", "apiVersion": "v1"}, "metrics": {"cpu": "1"}, "clusterLifetimeDays": 7},
    **STORED,
)
WITH_SECRET = a_shoot(spec={"secretBindingName": "key"})
TWO_PEOPLE = a_project(spec={"dualApprovalForDeletion": [{"resource": "shoots", "selector": {}}]})
CLASS = an_object(
    "ExposureClass", scheduling={"seedSelector": {"matchLabels": {"a": "1"}}, "tolerations": [{"key": "t"}]}
)
PRIMARY = an_object("ControllerRegistration", "first", spec={"resources": [{"kind": "Worker", "type": "aws"}]})
BASTION = an_object(
    "Bastion", "b", "garden-dev", "operations.gardener.cloud/v1alpha1", spec={"shootRef": {"name": "apollo"}}
)
OVERRIDE = an_object(
    "ClusterResourceOverride",
    "o",
    version=FLEET,
    spec={"clusterResourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "n"}]},
)
SECRET = an_object("Secret", "s", "garden-dev", "v1")


def cases() -> Iterator[Case]:
    yield from cases_of_references()
    yield from cases_of_seeds()
    yield from cases_of_managed_seeds()
    yield from cases_of_shoots()
    yield from cases_of_versions()
    yield from cases_of_other_kinds()


def cases_of_versions() -> Iterator[Case]:
    deprecated = {"kubernetes": {"versions": [{"version": "1.34.1", "classification": "deprecated"}]}}
    offered = related(a_cloudprofile(spec=deprecated), **BOUND)
    yield Case("ShootMutator", a_shoot(spec={"kubernetes": {"version": None}}), None, offered)
    yield Case("ShootValidator", of_version("1.34"), None, offered)
    many = {"provider": {"workers": [{"name": "pool-a", "minimum": 3, "maximum": 3}]}}
    limited = a_cloudprofile(spec={"limits": {"maxNodesTotal": 2}})
    yield Case("ShootValidator", a_shoot(spec=many), None, related(limited, **BOUND))


def cases_of_references() -> Iterator[Case]:
    leaving = an_object("Namespace", "garden-dev", version="v1", **merged(STORED, DELETING))
    staying = an_object("Namespace", "garden-dev", version="v1", **STORED)
    yield Case("NamespaceLifecycle", a_shoot(), None, related(leaving))
    yield Case("NamespaceLifecycle", a_shoot(), None, related(staying))
    manager = "ResourceReferenceManager"
    yield Case(manager, a_shoot())
    yield Case(manager, a_shoot(), None, related(PROFILE))
    yield Case(manager, a_cloudprofile(spec={"machineTypes": []}), a_cloudprofile())
    image = {"machineImages": [{"name": "own", "versions": [{"version": "1.0.0"}]}]}
    below = RelatedObjects(profiles_below={"aws": [a_namespaced_cloudprofile(spec=image)]})
    yield Case(manager, a_cloudprofile(spec=image), a_cloudprofile(), below)
    yield Case(manager, OF_SECRET)
    yield Case(manager, PROFILE, deleted=True)
    yield Case(manager, an_object("BackupBucket"), deleted=True)
    yield Case("FinalizerRemoval", a_project(), a_project(metadata={"finalizers": ["gardener"]}))
    running = {"technicalID": "t", "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100}}
    yield Case("FinalizerRemoval", a_shoot(), a_shoot(metadata={"finalizers": ["gardener"]}, status=running))
    yield Case("NamespacedCloudProfileValidator", a_namespaced_cloudprofile())
    unlisted = a_namespaced_cloudprofile(spec={"kubernetes": {"versions": [{"version": "0.1.0"}]}})
    yield Case("NamespacedCloudProfileValidator", unlisted, None, related(PROFILE))
    yield Case(manager, WITH_SECRET, None, related(PROFILE, merged(OF_SECRET, {"provider": {"type": "gcp"}})))
    yield Case("ResourceQuota", a_shoot())


def cases_of_seeds() -> Iterator[Case]:
    zones: Document = {"provider": {"zones": []}}
    for changed in (a_seed(spec=zones), a_seed(spec={"dns": {"defaults": DNS["defaults"]}}), a_seed()):
        yield Case("SeedValidator", changed, WITH_DNS, RelatedObjects(**SHOOTS_ON))
    yield Case("SeedValidator", WITH_DNS, deleted=True)
    identity = an_object("WorkloadIdentity", "me", "garden", SECURITY, spec={"targetSystem": {"type": "gcp"}})
    credentials: Document = {"apiVersion": SECURITY, "kind": "WorkloadIdentity", "name": "me", "namespace": "garden"}
    of_seed: Document = {"backup": {"provider": "aws", "credentialsRef": credentials}}
    yield Case("SeedValidator", a_seed(spec=of_seed), None, related(identity))
    bucket = an_object("BackupBucket", spec={"provider": {"type": "aws"}, "credentialsRef": credentials})
    yield Case("BackupBucketValidator", bucket, None, related(identity))


def cases_of_managed_seeds() -> Iterator[Case]:
    name, gardenlet = "ManagedSeed", an_object("Gardenlet", "child", "garden", SEED_MANAGEMENT)
    yield Case(name, a_small_seed(), None, related(CHILD, gardenlet))
    yield Case(name, gardenlet, None, related(a_small_seed()))
    yield Case(name, a_small_seed())
    other: dict[str, Any] = {"managed_seeds": {key_of(CHILD): a_managed_seed("other")}}
    yield Case(name, a_small_seed(), None, related(CHILD, **other))
    unfit: list[Document] = [
        DELETING,
        {"spec": {"dns": None}},
        {"spec": {"addons": {"nginxIngress": {"enabled": True}}}},
        {"spec": {"provider": {"workers": []}}},
        {"spec": {"kubernetes": {"verticalPodAutoscaler": None}}},
    ]
    for each in unfit:
        yield Case(name, a_small_seed(), None, related(a_child(**each)))
    yield Case(name, a_small_seed(provider={"type": "gcp", "zones": ["elsewhere"]}), None, related(CHILD))
    open_range = a_child(spec={"networking": {"nodes": None}})
    yield Case(name, a_small_seed(networks={"nodes": "10.9.0.0/16"}), None, related(open_range))
    old = a_small_seed(provider={"zones": ["eu-west-1a"]}, dns=DNS)
    shoots_on: dict[str, Any] = {"shoots_on": {"child": SHOOTS_ON["shoots_on"]["aws-eu1"]}}
    yield Case(name, a_small_seed(provider={"zones": ["eu-west-1b"]}), old, related(CHILD, **shoots_on))
    yield Case(name, a_small_seed(), None, related(CHILD))
    yield Case(name, a_small_seed(), deleted=True)

    on_it = {key_of(CHILD): a_small_seed(provider={"zones": ["eu-west-1a"]})}
    name = "ShootManagedSeed"
    changes: list[Document] = [
        {"addons": {"nginxIngress": {"enabled": True}}},
        {"kubernetes": {"verticalPodAutoscaler": None}},
        {"networking": {"nodes": "10.8.0.0/16"}},
        {"provider": {"workers": []}},
    ]
    for spec in changes:
        yield Case(name, a_child(spec=spec), CHILD, RelatedObjects(managed_seeds=on_it))
    yield Case(name, a_child(spec=changes[0]), CHILD)
    yield Case(name, CHILD, deleted=True)

    wanted = a_child(metadata={"annotations": {USE_AS_SEED: "true"}})
    made = merged(a_small_seed(), {"metadata": {"annotations": {MADE_FROM: MADE_FROM_ANNOTATION}}})
    yield Case("UseAsSeed", wanted, None, related(gardenlet))
    yield Case("UseAsSeed", merged(wanted, {"spec": {"provider": {"workers": []}}}))
    yield Case("UseAsSeed", CHILD, wanted, related(of_annotation(made, wanted), **shoots_on))


def of_annotation(managed_seed: Document, shoot: Document) -> Document:
    owner = {"apiVersion": CORE, "kind": "Shoot", "name": "child", "uid": shoot["metadata"]["uid"], "controller": True}
    return merged(managed_seed, {"metadata": {"ownerReferences": [owner]}})


def cases_of_shoots() -> Iterator[Case]:
    project = RelatedObjects(**BOUND)
    tolerant = a_shoot(spec={"tolerations": [{"key": "t"}]})
    yield Case("ShootTolerationRestriction", tolerant, None, project)
    exposed = a_shoot(spec={"exposureClassName": "one"})
    yield Case("ShootExposureClass", exposed)
    contradicting = merged(exposed, {"spec": {"seedSelector": {"matchLabels": {"a": "2"}}}})
    yield Case("ShootExposureClass", contradicting, None, related(CLASS))
    yield Case("ShootExposureClass", merged(exposed, {"spec": {"tolerations": [{"key": "t"}]}}), None, related(CLASS))
    full, primary = {"type": "x", "secretName": "s"}, {"type": "x", "primary": True}
    below = {"domain": "apollo.dev.example.org"}
    yield Case("ShootDNS", placed(spec={"dns": {**below, "providers": [primary]}}), None, related(WITH_DNS, **BOUND))
    idle = {"domain": "shop.example.com", "providers": [{**full, "primary": True}, {"type": "x"}]}
    yield Case("ShootDNS", placed(spec={"dns": idle}), None, related(WITH_DNS, **BOUND))

    quotas = "ShootQuotaValidator"
    yield Case(quotas, WITH_SECRET, None, related(OF_SECRET))
    yield Case(quotas, WITH_SECRET, None, related(OF_SECRET, QUOTA, PROFILE))
    for at in ("2027-01-01T00:00:00Z", "soon"):
        expiring = merged(WITH_SECRET, {"metadata": {"annotations": {EXPIRATION: at}}})
        yield Case(quotas, expiring, None, related(OF_SECRET, QUOTA))

    name = "ShootValidator"
    yield Case(name, a_shoot(), None, RelatedObjects(projects={"garden-dev": a_project(**DELETING)}))
    yield Case(name, a_shoot(**DELETING, spec={"purpose": "testing"}), a_shoot(**DELETING))
    sleepless = {"status": {"constraints": [{"type": "HibernationPossible", "status": "False", "message": "no"}]}}
    yield Case(name, merged(a_shoot(spec={"hibernation": {"enabled": True}}), sleepless), a_shoot())
    moving = placed(status={"seedName": "other"})
    yield Case(name, merged(moving, {"spec": {"purpose": "testing"}}), moving)
    yield Case(name, of_version("1.33.1"), of_version("1.34.1"))
    yield Case(name, of_version("1.36.1"), of_version("1.34.1"))
    yield Case(name, of_version("1.34.1", "1.35.0"))
    yield Case(name, of_version("1.34.1", "1.30.0"))
    yield Case(name, placed(), None, project)
    yield Case(name, placed(), None, related(a_seed()))
    yield Case(name, placed(), None, related(TAINTED, PROFILE, **BOUND))
    gated = placed(metadata=resolved_as({"schedulingGates": [{"name": "example.com/quota"}]}))
    yield Case(name, gated, None, related(a_seed(), PROFILE, **BOUND))
    selecting = placed(spec={"seedSelector": {"matchLabels": {"a": "1"}}})
    yield Case(name, placed(), selecting, related(a_seed()))
    yield Case(name, selecting, placed(), related(a_seed()))
    yield Case(name, placed(spec={"cloudProfile": {"name": "gcp"}}), placed(), related(PROFILE))
    types = {"provider": {"type": "gcp", "workers": [{"name": "a", "machine": {"type": "m9.large"}}]}}
    yield Case(name, a_shoot(spec=types), None, related(PROFILE))

    name = "DeletionConfirmation"
    yield Case(name, a_shoot(), deleted=True)
    confirmed = {"confirmation.gardener.cloud/deletion": "true", "deletion.gardener.cloud/confirmed-by": "ann"}
    twice = a_shoot(metadata={"annotations": confirmed})
    people = RelatedObjects(projects={"garden-dev": TWO_PEOPLE})
    yield Case(name, twice, None, people, deleted=True)
    yield Case(name, a_shoot(metadata={"annotations": {EXPIRATION: "2026-06-02T00:00:00Z"}}), a_shoot(), people)
    rules = [{"resource": "shoots", "selector": {"matchLabels": {"a": "1"}}}]
    some = RelatedObjects(projects={"garden-dev": a_project(spec={"dualApprovalForDeletion": rules})})
    yield Case(name, a_shoot(), a_shoot(metadata={"labels": {"a": "1"}}), some)


def cases_of_other_kinds() -> Iterator[Case]:
    registered = RelatedObjects(all_of={"controllerregistration": [PRIMARY]})
    yield Case("ExtensionValidator", a_shoot(), None, registered)
    second = merged(PRIMARY, {"metadata": {"name": "second"}})
    yield Case("ControllerRegistrationResources", second, None, registered)
    yield Case("ProjectValidator", a_project(spec={"namespace": "kube-system"}))
    yield Case("ProjectValidator", a_project(), deleted=True)
    yield Case("ProjectValidator", an_object("Namespace", "garden-dev", version="v1"), deleted=True)
    yield Case("CustomVerbAuthorizer", a_project(spec={"tolerations": {"whitelist": [{"key": "x"}]}}), a_project())

    yield Case("Bastion", merged(BASTION, {"spec": {"shootRef": None}}))
    yield Case("Bastion", BASTION, merged(BASTION, {"spec": {"shootRef": {"name": "other"}}}))
    yield Case("Bastion", BASTION)
    without_access = {"provider": {"workersSettings": {"sshAccess": {"enabled": False}}}}
    for shoot in (a_shoot(**DELETING), a_shoot(), placed(spec=without_access)):
        yield Case("Bastion", BASTION, None, related(shoot))

    placement = an_object("ClusterResourcePlacement", version=FLEET, spec={})
    budget = an_object("ClusterResourcePlacementDisruptionBudget", version=FLEET, spec={"maxUnavailable": 1})
    yield Case("PlacementValidator", budget, None, related(placement))
    same = [merged(OVERRIDE, {"metadata": {"name": f"o{number}"}}) for number in range(100)]
    yield Case("OverrideValidator", OVERRIDE, None, RelatedObjects(all_of={"clusterresourceoverride": same}))
    yield Case("OverrideValidator", OVERRIDE, None, RelatedObjects(all_of={"clusterresourceoverride": same[:1]}))
    yield Case("KubeconfigSecret", {**SECRET, "stringData": {"kubeconfig": "- no map"}})
    of_command = "users: [{name: u, user: {exec: {command: sh}}}]"
    yield Case("KubeconfigSecret", {**SECRET, "stringData": {"kubeconfig": of_command}})
    by_hand = a_shoot(metadata={"annotations": {RESOLVED: '{"requests":{"cpu":1}}'}})
    yield Case("SchedulingRequirements", by_hand, None, RelatedObjects(projects={"garden-dev": a_project()}))
    gated = a_shoot(metadata={"annotations": {REQUIREMENTS: "schedulingGates: [{name: example.com/quota}]"}})
    yield Case("SchedulingRequirements", gated, a_shoot(), RelatedObjects(projects={"garden-dev": a_project()}))
    first = a_shoot(metadata={"annotations": {REQUIREMENTS: "priority: 1"}})
    yield Case("SchedulingRequirements", first, None, RelatedObjects(projects={"garden-dev": a_project()}))
    yield Case("ResourceSize", SECRET)
    yield Case("ResourceSize", a_shoot())


BY_NAME: Mapping[str, AdmissionPlugin] = {each.name: each for each in PLUGINS} | {"ResourceSize": LARGE}
CASES = list(cases())


def messages_of(case: Case) -> Iterator[str]:
    """Reasons of a plug-in without their fields, and messages of the conditions of the write."""
    admission = Admission((BY_NAME[case.plugin],))
    try:
        if case.deleted:
            admission.admit_deletion(case.document, case.related, user=case.user)
            yield from (guard.message for guard in admission.deletion_guards(case.document))
            return
        document = admission.mutate(case.document, case.old, case.related, user=case.user, now=NOW).document
        admission.admit(document, case.old, case.related, user=case.user, now=NOW, check_verbs=without_verbs)
    except InvalidResource as error:
        yield from (problem.message for problem in error.problems)
        if "would be rejected" in error.message:
            yield error.message
        return
    except Forbidden as error:
        yield error.message
        return
    yield from (guard.message for guard in admission.write_guards(document, case.old, case.related))


def without_verbs(old: Document | None, new: Document) -> None:
    rejection = check_verbs(old, new, Requester("ann"), Permit(verbs=frozenset()))
    if rejection is not None:
        raise Forbidden(rejection.detail)


def given(case: Case) -> set[RejectionMessage]:
    """The declared refusals of a case; whatever else is given fails."""
    declared = {
        one: re.compile(re.sub(r"\\{\w+\\}", ".*", re.escape(one.sentence))) for one in BY_NAME[case.plugin].rejections
    }
    found = set[RejectionMessage]()
    for message in messages_of(case):
        matching = {one for one, pattern in declared.items() if pattern.fullmatch(message)}
        assert matching, f"{case.plugin} does not declare: {message}"
        found |= matching
    return found


@pytest.mark.parametrize("case", CASES, ids=[f"{number}-{case.plugin}" for number, case in enumerate(CASES)])
def test_a_case_is_refused_with_declared_sentences_only(case: Case) -> None:
    assert given(case)


@pytest.mark.parametrize("plugin", BY_NAME.values(), ids=BY_NAME)
def test_each_declared_rejection_is_given_in_some_case(plugin: AdmissionPlugin) -> None:
    found = {one for case in CASES if case.plugin == plugin.name for one in given(case)}
    assert [one.sentence for one in plugin.rejections if one not in found] == []


_MESSAGE_AT = {"Forbidden": 0, "InvalidResource": 0, "FieldProblem": 1, "WritePrecondition": 2}
_NOT_OF_PLUGINS = {
    *("controller_owned_kinds.py", "member_reports.py", "operators.py", "replaced_fields.py", "report_admission.py"),
    "responses.py",
    *("admit_migration", "course_of", "admit_state", "admit_deletion"),
}
"""Modules for requests as such, for reports, and for all that mutate; functions of a bind of a placed shoot."""
_RULES_OF_FIELDS = {"fields", "validation"}
"""Packages whose rules concern one object alone, whatever plug-ins there are."""


def is_sentence(message: ast.expr | None) -> bool:
    """True for a call of a constant, as `_IN_USE(object=key)`."""
    return isinstance(message, ast.Call) and isinstance(message.func, ast.Name) and message.func.id.isupper()


def test_plugins_make_their_reasons_of_refusals_only() -> None:
    found: list[str] = []
    for path in Path(gardenbus.apiserver.domain.__path__[0]).rglob("*.py"):
        if path.parent.name in _RULES_OF_FIELDS:
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef) or not _NOT_OF_PLUGINS.isdisjoint((path.name, function.name)):
                continue
            for call in ast.walk(function):
                if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                    continue
                position = _MESSAGE_AT.get(call.func.id)
                if position is not None and not is_sentence(dict(enumerate(call.args)).get(position)):
                    found.append(f"{path.name}:{call.lineno}")
    assert found == []
