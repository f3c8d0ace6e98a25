"""Which service this process is, and of which version: for Prometheus, beside what it tells of processes by itself."""

from importlib.metadata import PackageNotFoundError, version

from prometheus_client import Gauge, disable_created_metrics

BUILD_INFO = Gauge("gardenbus_build_info", "1, with the service and its version as labels.", ["service", "version"])

disable_created_metrics()  # the start of a process tells as much, and they double what each scrape has to carry


def tell_build(service: str) -> None:
    """Say once which service runs here."""
    try:
        found = version(f"gardenbus-{service}")
    except PackageNotFoundError:
        found = "unknown"
    BUILD_INFO.labels(service, found).set(1)
