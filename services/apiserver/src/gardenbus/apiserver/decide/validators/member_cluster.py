"""The rules of a MemberCluster.

Source: KubeFleet's `apis/cluster/v1beta1` and `pkg/utils/validator/membercluster.go`.
"""

from gardenbus.apiserver.decide.fields import Place, shown
from gardenbus.apiserver.decide.metadata import label_value_problem, qualified_name_problem
from gardenbus.apiserver.decide.validators.limits import check_quantity_text, check_quantity_texts
from gardenbus.apiserver.decide.validators.scheduling import check_instant
from gardenbus.apiserver.decide.validators.status import check_conditions, check_status
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.member_clusters import CLUSTER_NAMESPACE_PREFIX, MemberCluster

TAINT_EFFECTS = ("NoSchedule",)
MOST_TAINTS = 100
LONGEST_NAME = 63 - len(CLUSTER_NAMESPACE_PREFIX)
"""Characters of a cluster's name: with the prefix it names a namespace."""
_LONGEST_HEARTBEAT_SECONDS = 600
_USAGES = ("capacity", "allocatable", "available")


def check(manifest: Place, old: Document | None) -> None:
    """Note every problem of a MemberCluster."""
    _ = old
    name = str(section(manifest.content, "metadata").get("name"))
    if len(name) > LONGEST_NAME:
        namespace = f"its Works stand in the namespace {CLUSTER_NAMESPACE_PREFIX}<name>"
        manifest.note("metadata.name", f"must have at most {LONGEST_NAME} characters, not {len(name)}: {namespace}")
    check_member_cluster_status(manifest)
    spec = manifest.section("spec")
    if spec is None:
        return
    spec.integer("heartbeatPeriodSeconds", least=1, most=_LONGEST_HEARTBEAT_SECONDS)
    check_cluster_taints(spec)
    if not manifest.notebook.problems:
        MemberCluster.from_document(dict(manifest.content))


def check_cluster_taints(spec: Place, field: str = "taints") -> None:
    """Note taints that are malformed or repeated, and too many of them."""
    taints = spec.entries(field)
    if len(taints) > MOST_TAINTS:
        spec.note(field, f"must be at most {MOST_TAINTS}, not {len(taints)}")
    seen: set[tuple[str | None, ...]] = set()
    for taint in taints:
        key, value = taint.text("key", required=True), taint.text("value")
        effect = taint.choice("effect", TAINT_EFFECTS, required=True)
        if key and (problem := qualified_name_problem(key)):
            taint.note("key", problem)
        if value and (problem := label_value_problem(value)):
            taint.note("value", problem)
        entry = (key, value or "", effect)
        if key and entry in seen:
            taint.note("key", f"{shown(key)} with the same value and effect is in the list already: keep one")
        seen.add(entry)


def check_member_cluster_status(manifest: Place) -> None:
    """Note what the scheduler could not read: properties and resources that are no quantities, wrong heartbeats."""
    status = check_status(manifest)
    if status is None:
        return
    if properties := status.section("properties"):
        for name in properties.content:
            if value := properties.section(name, required=True):
                check_quantity_text(value, "value")
                value.text("observationTime")
    if usage := status.section("resourceUsage"):
        for field in _USAGES:
            check_quantity_texts(usage, field)
        usage.text("observationTime")
    for agent in status.entries("agentStatus"):
        agent.text("type", required=True)
        check_conditions(agent, "conditions")
        check_instant(agent, "lastReceivedHeartbeat")
    status.text_map("namespaces")
