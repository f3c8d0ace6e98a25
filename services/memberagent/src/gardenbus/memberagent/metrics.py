"""Prometheus metrics of a process of member agents, summed over all its clusters."""

from prometheus_client import Counter, Gauge

CLUSTERS = Gauge("gardenbus_memberagent_clusters", "Clusters that this process speaks for.")
WORKS = Gauge("gardenbus_memberagent_works", "Works that this process has received.")
REPORTS = Counter("gardenbus_memberagent_reports_sent_total", "Reports that the bus has taken.")
HEARTBEATS = Counter("gardenbus_memberagent_heartbeats_total", "Heartbeats that were reported.")
APPLIED = Counter(
    "gardenbus_memberagent_works_applied_total",
    "Works that were applied, by result: available, waiting (applied, not available yet), failed.",
    ["result"],
)
for _result in ("available", "waiting", "failed"):
    APPLIED.labels(_result)
