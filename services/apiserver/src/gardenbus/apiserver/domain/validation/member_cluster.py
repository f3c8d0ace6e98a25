"""The rules of a MemberCluster.

Source: KubeFleet's `apis/cluster/v1beta1` and `pkg/utils/validator/membercluster.go`.
"""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.limits import quantity_problem
from gardenbus.apiserver.domain.validation.metadata import label_value_problem, qualified_name_problem
from gardenbus.apiserver.domain.validation.shared import check_instant
from gardenbus.apiserver.domain.validation.status import check_conditions, check_status
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.member_clusters import CLUSTER_NAMESPACE_PREFIX, MemberCluster
from gardenbus.common.api.shown_values import shown

TAINT_EFFECTS = ("NoSchedule",)
MOST_TAINTS = 100
LONGEST_NAME = 63 - len(CLUSTER_NAMESPACE_PREFIX)
"""Characters of a cluster's name: with the prefix it names a namespace."""
_LONGEST_HEARTBEAT_SECONDS = 600
_USAGES = ("capacity", "allocatable", "available")


def check(manifest: FieldCursor, _old: Document | None) -> None:
    """Note every problem of a MemberCluster."""
    name = str(section(manifest.content, "metadata").get("name"))
    if len(name) > LONGEST_NAME:
        namespace = f"its Works stand in the namespace {CLUSTER_NAMESPACE_PREFIX}<name>"
        manifest.add_error(
            "metadata.name", f"must have at most {LONGEST_NAME} characters, not {len(name)}: {namespace}"
        )
    check_member_cluster_status(manifest)
    spec = manifest.section("spec")
    spec.integer("heartbeatPeriodSeconds", least=1, most=_LONGEST_HEARTBEAT_SECONDS)
    check_cluster_taints(spec)
    spec.section("deleteOptions").choice("validationMode", ("Strict", "Skip"))
    if spec and not manifest.errors.problems:
        MemberCluster.from_document(dict(manifest.content))


def check_cluster_taints(spec: FieldCursor, field: str = "taints") -> None:
    """Note taints that are malformed or repeated, and too many of them."""
    seen: set[tuple[str | None, ...]] = set()
    for taint in spec.entries(field, most=MOST_TAINTS):
        key = taint.text("key", required=True, rule=qualified_name_problem)
        value = taint.text("value", rule=label_value_problem)
        effect = taint.choice("effect", TAINT_EFFECTS, required=True)
        entry = (key, value or "", effect)
        if key and entry in seen:
            taint.add_error("key", f"{shown(key)} with the same value and effect is in the list already: keep one")
        seen.add(entry)


TEXTS = "k8s.io/"
"""Prefix of properties that are texts, as KubeFleet reports them: the Kubernetes version, the address."""


def check_member_cluster_status(manifest: FieldCursor) -> None:
    """Note what the scheduler could not read: properties and resources that are no quantities, wrong heartbeats."""
    status = check_status(manifest)
    properties = status.section("properties")
    for name in properties.content:
        value = properties.section(name, required=True)
        value.text("value", required=True, rule=None if name.startswith(TEXTS) else quantity_problem)
        value.text("observationTime")
    usage = status.section("resourceUsage")
    for field in _USAGES:
        usage.text_map(field, rule=quantity_problem)
    usage.text("observationTime")
    for agent in status.entries("agentStatus"):
        agent.text("type", required=True)
        check_conditions(agent, "conditions")
        check_instant(agent, "lastReceivedHeartbeat")
    status.text_map("namespaces")
    check_instant(status, "clientCertificateExpirationTimestamp")
