"""`SchedulerConfiguration`: the candidate determination strategy, the scheduler's name or its profiles, and logging.

Source: `pkg/apis/config/scheduler/v1alpha1` of Gardener; `schedulers.shoot.schedulerName` and `profiles` are ours.
"""

from functools import partial

import msgspec

from gardenbus.common.api.configuration import reader
from gardenbus.common.api.configuration.reader import Field, Reading, Table, ignored
from gardenbus.common.api.configuration.scheduling_profiles import PROFILES, OwnFilters, completed
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.garden.strategies import SAME_REGION, STRATEGIES, WEIGHTED

API_VERSION = "scheduler.config.gardener.cloud/v1alpha1"
KIND = "SchedulerConfiguration"
PATH_SEPARATOR = ":"
"""Between the files of `GARDENBUS_SCHEDULER_CONFIGURATIONS`."""


class SchedulerConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The fields with an effect; `ignored` are the paths of the others that are in the file."""

    strategy: str = SAME_REGION
    scheduler_name: str = DEFAULT_SCHEDULER
    profiles: tuple[SchedulingProfile, ...] = ()
    log_level: str = "info"
    log_format: str = "json"
    ignored: tuple[str, ...] = ()

    @property
    def served(self) -> tuple[SchedulingProfile, ...]:
        """The profiles that one process serves: those of the file, or one without plug-ins."""
        return self.profiles or (SchedulingProfile(scheduler_name=self.scheduler_name, strategy=self.strategy),)


def parse_configuration(text: str | bytes, own_filters: OwnFilters | None = None) -> SchedulerConfiguration:
    """Read the file's content (YAML or JSON); raises SettingsInvalid with the path of everything that is wrong.

    `own_filters` gives the names of users' own filters that profiles may name; without it they may name any.
    """
    return SchedulerConfiguration(**reader.read_one(text, _TABLE, partial(_complete, own_filters)))


def _complete(own_filters: OwnFilters | None, reading: Reading) -> None:
    values, problems = reading.values, reading.problems
    drafts = values.get("profiles", ())
    strategy = values.get("strategy", "")
    if drafts and "scheduler_name" in values:
        problems.append("schedulers.shoot.schedulerName: profiles have their own; one of the two has to go")
    if not drafts and strategy == WEIGHTED:
        problems.append("schedulers.shoot.candidateDeterminationStrategy: Weighted needs profiles, whose scores choose")
    values["profiles"] = completed(drafts, strategy, own_filters, problems)


_ENDPOINT: Table = {**ignored("bindAddress", parse=reader.text), **ignored("port", parse=reader.port)}

_TABLE: Table = {
    **reader.header(API_VERSION, KIND),
    **reader.logging(),
    "profiles": PROFILES,
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
