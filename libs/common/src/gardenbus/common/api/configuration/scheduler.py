"""`SchedulerConfiguration`: the candidate determination strategy, the scheduler's name, and logging.

Source: `pkg/apis/config/scheduler/v1alpha1` of Gardener; `schedulers.shoot.schedulerName` is ours.
"""

import msgspec

from gardenbus.common.api.configuration import reader
from gardenbus.common.api.configuration.reader import Field, Table, ignored
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.garden.strategies import SAME_REGION, STRATEGIES

API_VERSION = "scheduler.config.gardener.cloud/v1alpha1"
KIND = "SchedulerConfiguration"


class SchedulerConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The fields with an effect; `ignored` are the paths of the others that are in the file."""

    strategy: str = SAME_REGION
    scheduler_name: str = DEFAULT_SCHEDULER
    log_level: str = "info"
    log_format: str = "json"
    ignored: tuple[str, ...] = ()


def parse_configuration(text: str | bytes) -> SchedulerConfiguration:
    """Read the file's content (YAML or JSON); raises SettingsInvalid with the path of everything that is wrong."""
    return SchedulerConfiguration(**reader.read_one(text, _TABLE))


_ENDPOINT: Table = {**ignored("bindAddress", parse=reader.text), **ignored("port", parse=reader.port)}

_TABLE: Table = {
    **reader.header(API_VERSION, KIND),
    **reader.logging(),
    **ignored("featureGates", parse=reader.flags),
    "clientConnection": {
        **ignored("kubeconfig", "acceptContentTypes", "contentType", parse=reader.text),
        **ignored("qps", "burst", parse=reader.number),
    },
    "leaderElection": {
        **ignored("leaderElect", parse=reader.flag),
        **ignored("leaseDuration", "renewDeadline", "retryPeriod", parse=reader.text),
        **ignored("resourceLock", "resourceName", "resourceNamespace", parse=reader.text),
    },
    "server": {"healthProbes": _ENDPOINT, "metrics": _ENDPOINT},
    "debugging": ignored("enableProfiling", "enableContentionProfiling", parse=reader.flag),
    "schedulers": {
        "backupBucket": ignored("concurrentSyncs", parse=reader.count),
        "shoot": {
            **ignored("concurrentSyncs", parse=reader.count),  # shoots are scheduled in batches instead
            "candidateDeterminationStrategy": Field("strategy", reader.one_of(*STRATEGIES)),
            "schedulerName": Field("scheduler_name", reader.label),
        },
    },
}
