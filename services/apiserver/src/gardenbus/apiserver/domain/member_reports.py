"""Reports of member agents: whose they are, and what they may be about. Pure."""

from typing import Final

from gardenbus.apiserver.domain.report_messages import Report
from gardenbus.common.api.fleet.member_clusters import REPORTER_PREFIX, namespace_of
from gardenbus.common.api.fleet.works import WORK_KIND
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden

CLUSTER_KIND: Final = "membercluster"
VERBS = ("status", "apply", "delete", "event", "exists")
"""Verbs of an agent's report."""


def cluster_of(reporter: str) -> str:
    """The cluster whose agent a reporter is; "" for a gardenlet."""
    return reporter.removeprefix(REPORTER_PREFIX) if reporter.startswith(REPORTER_PREFIX) else ""


def check_member(report: Report, cluster: str) -> None:
    """Raise Forbidden unless the report is on the cluster itself or on a Work for it, and of a sort that may be."""
    if report.verb not in VERBS:
        raise Forbidden(f"the agent of cluster {cluster} reports {', '.join(VERBS)}, and no {report.verb}")
    if report.key == ObjectKey(CLUSTER_KIND, "", cluster):
        return
    if report.verb == "exists" and report.key == ObjectKey("seed", "", cluster):
        return
    if report.verb in ("apply", "delete"):
        raise Forbidden(f"the agent of cluster {cluster} may {report.verb} its own MemberCluster, and not {report.key}")
    if (report.key.kind, report.key.namespace) != (WORK_KIND, namespace_of(cluster)):
        raise Forbidden(
            f"{report.key} is not of cluster {cluster}: its agent reports on its MemberCluster and on the Works in "
            f"{namespace_of(cluster)}"
        )
