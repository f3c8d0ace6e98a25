"""The page of all metrics that the services export at `/metrics`."""

from collections.abc import Mapping, Sequence

from gardenbus.docs.exported_metrics import SERVICES, ExportedMetric, exported
from gardenbus.docs.markdown import row, table

_HEAD = """# Metrics

Every service serves `/metrics` in Prometheus' text format, on the address that is in its log and in
`landscape.json` (in a container: port 8080). Units are seconds, bytes and plain counts; what is counted since the start
of a process ends in `_total`. Labels are bounded: none holds the name of a shoot, and names of seeds only those metrics
that `GARDENBUS_PER_SEED_METRICS` turns on.

A replica counts what it does itself: add replicas up. What lifecycle reports of the seeds, and the relay of both
servers, is the same from each replica: take the largest. What to watch and do: [observability](../observability.md).
"""

_GROUPS: Mapping[str, str] = {
    "gardenbus_": "Gardenbus",
    "workqueue_": "Work queues, by the names of client-go",
    "controller_runtime_": "Controllers, by the names of controller-runtime",
    "process_": "Processes",
    "python_": "Python",
}


def metrics_page() -> str:
    """The page's Markdown."""
    services = exported_in_all()
    parts = [_HEAD]
    for prefix, title in _GROUPS.items():
        rows = [
            row(
                f"`{metric.name}`",
                metric.type,
                ", ".join(f"`{label}`" for label in metric.labels) or "none",
                "all" if len(exporters) == len(SERVICES) else ", ".join(exporters),
                metric.meaning,
            )
            for metric, exporters in services.items()
            if metric.name.startswith(prefix)
        ]
        parts += [f"## {title}\n", table(("metric", "type", "labels", "services", "meaning"), rows)]
    return "\n".join(parts)


def exported_in_all() -> Mapping[ExportedMetric, Sequence[str]]:
    """Every metric by name, with the services that export it."""
    found: dict[ExportedMetric, list[str]] = {}
    for service, metrics in exported().items():
        for metric in metrics:
            found.setdefault(metric, []).append(service)
    return dict(sorted(found.items()))
