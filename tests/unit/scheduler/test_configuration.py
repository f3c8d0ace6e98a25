import pytest

from gardenbus.common.api.configuration.scheduler import SchedulerConfiguration, parse_configuration
from gardenbus.common.errors import SettingsInvalid

HEAD = "apiVersion: scheduler.config.gardener.cloud/v1alpha1\nkind: SchedulerConfiguration\n"

GARDENERS_EXAMPLE = (
    HEAD
    + """
clientConnection: {qps: 100, burst: 130}
leaderElection:
  leaderElect: true
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
  resourceLock: leases
  resourceNamespace: garden
  resourceName: gardener-scheduler-leader-election
logLevel: info
logFormat: text
server:
  healthProbes: {port: 10251}
  metrics: {port: 19252}
debugging: {enableProfiling: false, enableContentionProfiling: false}
featureGates: {}
schedulers:
  backupBucket: {concurrentSyncs: 5}
  shoot:
    concurrentSyncs: 7
    candidateDeterminationStrategy: MinimalDistance
    schedulerName: mine
"""
)


def test_gardeners_own_file_is_taken_and_what_has_no_effect_is_named() -> None:
    configuration = parse_configuration(GARDENERS_EXAMPLE)
    assert (configuration.strategy, configuration.scheduler_name) == ("MinimalDistance", "mine")
    assert configuration.log_format == "text"
    assert "clientConnection.qps" in configuration.ignored
    assert "schedulers.backupBucket.concurrentSyncs" in configuration.ignored
    assert "schedulers.shoot.schedulerName" not in configuration.ignored


def test_the_bare_file_has_the_defaults() -> None:
    assert parse_configuration(HEAD) == SchedulerConfiguration()
    assert parse_configuration(HEAD + "schedulers: null\nlogLevel: ''") == SchedulerConfiguration()


def test_everything_wrong_is_listed_with_its_path() -> None:
    text = """
apiVersion: scheduler.config.gardener.cloud/v2
kind: SchedulerConfiguration
shoots: 1
logLevel: loud
server: here
clientConnection: {qps: many}
schedulers:
  shoot: {strategy: SameRegion, candidateDeterminationStrategy: Nearest, concurrentSyncs: 0, schedulerName: A.b}
"""
    with pytest.raises(SettingsInvalid) as raised:
        parse_configuration(text)
    paths = {problem.partition(":")[0] for problem in raised.value.problems}
    assert paths == {
        "apiVersion",
        "shoots",
        "logLevel",
        "server",
        "clientConnection.qps",
        "schedulers.shoot.strategy",
        "schedulers.shoot.candidateDeterminationStrategy",
        "schedulers.shoot.concurrentSyncs",
        "schedulers.shoot.schedulerName",
    }


@pytest.mark.parametrize("text", ["", "- a", "a: [", "kind: x", b"\xff\xfe\x00"])
def test_what_is_no_configuration_is_refused(text: str | bytes) -> None:
    with pytest.raises(SettingsInvalid):
        parse_configuration(text)
