"""Build info metric: service and version of this process."""

from importlib.metadata import PackageNotFoundError, version

from prometheus_client import Gauge, disable_created_metrics

BUILD_INFO = Gauge("gardenbus_build_info", "1, with the service and its version as labels.", ["service", "version"])

disable_created_metrics()  # they repeat the start of the process, and double the size of each scrape


def export_build_info(service: str) -> None:
    """Export the service and its version, once."""
    try:
        found = version(f"gardenbus-{service}")
    except PackageNotFoundError:
        found = "unknown"
    BUILD_INFO.labels(service, found).set(1)
