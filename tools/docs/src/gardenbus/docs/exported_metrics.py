"""`python -m gardenbus.docs.exported_metrics`: the metrics of each service, as JSON, without starting any.

Each service is read in a process of its own, forked from one that has loaded what all share: what is registered there
is what the service exports. All are read at once: one after the other they took more than a minute on a busy machine.
"""

import importlib
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import msgspec
from prometheus_client import REGISTRY, CollectorRegistry

SERVICES = (
    "apiserver",
    "scheduler",
    "gardenlet",
    "lifecycle",
    "controllermanager",
    "managedseedset",
    "autoscaler",
    "placement",
    "memberagent",
    "relay",
    "identity",
    "dashboard",
    "kubeapi",
)
_SHARED = "gardenbus.common.runtime.connections"
"""Imports what takes time, and registers what all services have."""


class ExportedMetric(msgspec.Struct, frozen=True, order=True):
    """A metric as it is named on the wire (counters with `_total`)."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str


@cache
def exported() -> Mapping[str, Sequence[ExportedMetric]]:
    """The metrics of each service, by name. It has no deadline: how long it takes is the machine's business."""
    completed = subprocess.run([sys.executable, "-m", __name__], check=True, stdout=subprocess.PIPE)  # noqa: S603
    return msgspec.json.decode(completed.stdout, type=dict[str, list[ExportedMetric]])


def registered(registry: CollectorRegistry) -> Iterator[ExportedMetric]:
    """Metrics that are registered in this process."""
    collectors = cast("dict[Any, Any]", vars(registry)["_collector_to_names"])
    for collector in collectors:
        for metric_family in collector.collect():
            found = {label for sample in metric_family.samples for label in sample.labels}
            declared: Sequence[str] = getattr(collector, "_labelnames", sorted(found - {"le"}))
            name = f"{metric_family.name}_total" if metric_family.type == "counter" else metric_family.name
            yield ExportedMetric(name, metric_family.type, tuple(declared), metric_family.documentation)


class _Reader(NamedTuple):
    """A process that reads one service, and the pipe on which it says what it has found."""

    service: str
    process: int
    pipe: int


def _forked(service: str) -> _Reader:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            importlib.import_module(f"gardenbus.{service}.app")
            if service == "scheduler":
                importlib.import_module("gardenbus.scheduler.metrics").SchedulerMetrics()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(msgspec.json.encode(sorted(registered(REGISTRY))))
            status = 0
        except Exception:  # noqa: BLE001  (shown here, as the process ends without unwinding)
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    return _Reader(service, child, reading)


def _found(reader: _Reader) -> Sequence[ExportedMetric]:
    with os.fdopen(reader.pipe, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(reader.process, 0)
    if status:
        sys.exit(f"{reader.service} could not be read: status {os.waitstatus_to_exitcode(status)}")
    return msgspec.json.decode(text, type=list[ExportedMetric])


if __name__ == "__main__":
    importlib.import_module(_SHARED)
    readers = [_forked(service) for service in SERVICES]
    sys.stdout.buffer.write(msgspec.json.encode({reader.service: _found(reader) for reader in readers}))
