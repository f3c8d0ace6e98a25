"""What the agent of a member cluster may say: of its MemberCluster, which it registers, and of the Works for it.

Its reports come under the token of `member_clusters.reporter_of`, without a fence: what it says of one object is in
order, and there is nothing that two agents of one cluster could take from each other.
"""

from typing import Any, Final, cast

import msgspec
import structlog

from gardenbus.apiserver.decide.metadata import key_of
from gardenbus.apiserver.decide.validators.member_cluster import TAINT_EFFECTS
from gardenbus.apiserver.reconcilers import report_rules
from gardenbus.apiserver.reconcilers.attempts import StaleVersion
from gardenbus.apiserver.reconcilers.preconditions import version_in
from gardenbus.apiserver.reconcilers.reads import Reads
from gardenbus.apiserver.reconcilers.report_messages import Report
from gardenbus.apiserver.reconcilers.writing import Writer
from gardenbus.common.errors import Forbidden, Unavailable
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.member_clusters import AGENT_CLEANUP, REPORTER_PREFIX, has_left, namespace_of
from gardenbus.common.resources.works import WORK_KIND

_log = structlog.stdlib.get_logger()

CLUSTER_KIND: Final = "membercluster"
VERBS = ("status", "apply", "delete", "event")
"""What an agent's report may be; nothing is asked by one."""

USER = "kubernetes-fleet.io:system:member:"
_ATTEMPTS = 25


def cluster_of(reporter: str) -> str:
    """The cluster whose agent a reporter is; "" for a gardenlet."""
    return reporter.removeprefix(REPORTER_PREFIX) if reporter.startswith(REPORTER_PREFIX) else ""


def check_member(report: Report, cluster: str) -> None:
    """Raise Forbidden unless the report is on the cluster itself or on a Work for it, and of a sort that may be."""
    if report.verb not in VERBS:
        raise Forbidden(f"the agent of cluster {cluster} reports {', '.join(VERBS)}, and no {report.verb}")
    if report.key == ObjectKey(CLUSTER_KIND, "", cluster):
        return
    if report.verb in ("apply", "delete"):
        raise Forbidden(f"the agent of cluster {cluster} may {report.verb} its own MemberCluster, and not {report.key}")
    if (report.key.kind, report.key.namespace) != (WORK_KIND, namespace_of(cluster)):
        raise Forbidden(
            f"{report.key} is not of cluster {cluster}: its agent reports on its MemberCluster and on the Works in "
            f"{namespace_of(cluster)}"
        )


async def register(report: Report, cluster: str, reads: Reads, writer: Writer) -> None:
    """Store the MemberCluster that an agent describes. Raises Forbidden, and what `Writer.apply` raises.

    Dropped when the cluster is being deleted, or when it comes a second time and the cluster is not there: it may have
    been registered by the first, and have left since.
    """
    check_member(report, cluster)
    if key_of(report.body) != report.key:
        raise Forbidden(f"the manifest is not of {report.key}, which the subject names")
    for _ in range(_ATTEMPTS):
        stored = await reads.get(report.key)
        if stored.is_deleting if stored is not None else report.work.deliveries > 1:
            _log.info("registration.dropped", cluster=cluster)
            return
        has_version = bool(version_in(report.body))
        manifest = report.body if stored is None or has_version else report_rules.based_on(report.body, stored)
        last_applied = stored.last_applied if stored is not None else b""

        def settle(current: Document | None, merged: Document, last_applied: bytes = last_applied) -> Document:
            return merged if current is None else with_taints_kept(merged, current, last_applied)

        try:
            await writer.apply(manifest, reads, user=USER + cluster, settle=settle)
        except StaleVersion:
            if has_version:
                raise
            reads.forget(report.key)
        else:
            return
    raise Unavailable(f"{report.key} is changed by others all the time")


async def withdraw(report: Report, reads: Reads, writer: Writer) -> None:
    """Delete the MemberCluster that an agent has leave; of one that is gone or was made anew nothing is said.

    Raises Forbidden without the uid: such a report may be of another cluster's life.
    """
    if not report.uid:
        raise Forbidden(f"{report.key} is deleted by a report with its uid only")
    stored = await reads.get(report.key)
    if stored is not None and stored.uid == report.uid and not stored.is_deleting:
        await writer.delete(report.key, reads)


def with_taints_kept(merged: Document, before: Document, last_applied: bytes) -> Document:
    """A merged MemberCluster with the taints that others put on it: an agent takes off those alone that it has stated.

    `before` is the cluster as it was, `last_applied` the manifest that was applied to it last, as JSON ("" for none).
    """
    last: Document = msgspec.json.decode(last_applied) if last_applied else {}
    stated, stored = _taints(merged), _taints(before)
    its_own = [_compared(taint) for taint in (*_taints(last), *stated)]
    others = [taint for taint in stored if _compared(taint) not in its_own]
    if not others:
        return merged
    return {**merged, "spec": {**section(merged, "spec"), "taints": [*others, *stated]}}


def _taints(cluster: Document) -> list[Document]:
    listed: Any = section(cluster, "spec").get("taints")
    entries = cast("list[Any]", listed) if isinstance(listed, list) else []
    return [cast("Document", entry) for entry in entries if isinstance(entry, dict)]


def _compared(taint: Document) -> tuple[object, ...]:
    return (taint.get("key"), taint.get("value") or "", taint.get("effect") or TAINT_EFFECTS[0])


def held_or_left(cluster: Document) -> Document:
    """A MemberCluster that was reported on, held by its agent, or let go once the agent has taken everything off it.

    Nobody takes hold of one that is being deleted.
    """
    metadata = section(cluster, "metadata")
    finalizers = cast("list[str]", metadata.get("finalizers") or [])
    if metadata.get("deletionTimestamp"):
        others = [finalizer for finalizer in finalizers if finalizer != AGENT_CLEANUP] if has_left(cluster) else None
        if others is None or len(others) == len(finalizers):
            return cluster
        left = {name: value for name, value in metadata.items() if name != "finalizers"}
        return {**cluster, "metadata": {**left, "finalizers": others} if others else left}
    if AGENT_CLEANUP in finalizers:
        return cluster
    return {**cluster, "metadata": {**metadata, "finalizers": [*finalizers, AGENT_CLEANUP]}}


def reporter_name(reporter: str) -> str:
    """Whose word an Event is: `gardenlet-<seed>` or `memberagent-<cluster>`."""
    cluster = cluster_of(reporter)
    return f"memberagent-{cluster}" if cluster else f"gardenlet-{reporter}"
