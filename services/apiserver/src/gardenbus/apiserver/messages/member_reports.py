"""Reports of member agents: on their MemberCluster, which they register, and on the Works for it.

They come under the token of `member_clusters.reporter_of`, without a fencing token: reports on one object are in order,
and two agents of one cluster have nothing to conflict about.
"""

from collections.abc import Sequence

import msgspec
import structlog

from gardenbus.apiserver.domain import report_admission
from gardenbus.apiserver.domain.member_reports import check_member, cluster_of
from gardenbus.apiserver.domain.report_messages import Report
from gardenbus.apiserver.domain.validation.member_cluster import TAINT_EFFECTS
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.apiserver.registry.preconditions import version_in
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import StaleVersion
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, mappings, with_finalizer, without_finalizer
from gardenbus.common.api.fleet.member_clusters import AGENT_CLEANUP, has_left
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.members import Members
from gardenbus.common.errors import Forbidden, Unavailable

_log = structlog.stdlib.get_logger()

USER = "kubernetes-fleet.io:system:member:"
_ATTEMPTS = 25


async def register(report: Report, cluster: str, reads: ReadCache, writer: Writer) -> None:
    """Store the MemberCluster that an agent describes. Raises Forbidden, and what `Writer.apply` raises.

    Dropped when the cluster is being deleted, or when a redelivered report finds no cluster: the first delivery may
    have registered one that has left since.
    """
    check_member(report, cluster)
    if key_of(report.body) != report.key:
        raise Forbidden(f"the manifest is not of {report.key}, which the subject names")
    for _ in range(_ATTEMPTS):
        stored = await reads.get(report.key)
        if stored.is_deleting if stored is not None else report.queued.deliveries > 1:
            _log.info("registration.dropped", cluster=cluster)
            return
        if stored is None:
            await writer.agent_credentials.check_registration(Principal("member-agent", cluster))
        has_version = bool(version_in(report.body))
        manifest = report.body if stored is None or has_version else report_admission.at_version_of(report.body, stored)
        last_applied = stored.last_applied if stored is not None else b""

        def post_merge(current: Document | None, merged: Document, last_applied: bytes = last_applied) -> Document:
            return merged if current is None else with_taints_kept(merged, current, last_applied)

        try:
            await writer.apply(manifest, reads, user=USER + cluster, post_merge=post_merge)
        except StaleVersion:
            if has_version:
                raise
            reads.invalidate(report.key)
        else:
            return
    raise Unavailable(f"{report.key} keeps changing")


async def withdraw(report: Report, reads: ReadCache, writer: Writer) -> None:
    """Delete the MemberCluster of an agent that leaves; one that is gone or was created again is ignored.

    Raises Forbidden without the uid: such a report may mean an earlier cluster of the name.
    """
    if not report.uid:
        raise Forbidden(f"{report.key} is deleted by a report with its uid only")
    stored = await reads.get(report.key)
    if stored is not None and stored.uid == report.uid and not stored.is_deleting:
        await writer.delete(report.key, reads)


def with_taints_kept(merged: Document, before: Document, last_applied: bytes) -> Document:
    """A merged MemberCluster with the taints of others: an agent removes only those that it has stated.

    `before` is the stored cluster, `last_applied` the manifest that was applied to it last, as JSON ("" for none).
    """
    last: Document = (msgspec.json.decode(last_applied) if last_applied else None) or {}
    stated, stored = _taints(merged), _taints(before)
    its_own = Members(_compared(taint) for taint in (*_taints(last), *stated))
    others = [taint for taint in stored if _compared(taint) not in its_own]
    if not others:
        return merged
    return {**merged, "spec": {**section(merged, "spec"), "taints": [*others, *stated]}}


def _taints(cluster: Document) -> Sequence[Document]:
    return mappings(section(cluster, "spec").get("taints"))


def _compared(taint: Document) -> tuple[object, ...]:
    return (taint.get("key"), taint.get("value") or "", taint.get("effect") or TAINT_EFFECTS[0])


def with_agent_finalizer(cluster: Document) -> Document:
    """A reported MemberCluster with its agent's finalizer, or without it once the agent has removed everything.

    A cluster that is being deleted gets no finalizer.
    """
    if is_deleting(cluster) and has_left(cluster):
        return without_finalizer(cluster, AGENT_CLEANUP)
    return with_finalizer(cluster, AGENT_CLEANUP)


def reporter_name(reporter: str) -> str:
    """Reporter of an Event: `gardenlet-<seed>` or `memberagent-<cluster>`."""
    cluster = cluster_of(reporter)
    return f"memberagent-{cluster}" if cluster else f"gardenlet-{reporter}"
