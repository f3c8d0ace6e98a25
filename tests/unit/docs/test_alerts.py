"""The alert rules: each fires when it should and is silent otherwise, and has its paragraph in the documentation."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from gardenbus.cli.main import COMMANDS
from gardenbus.docs.exported_metrics import exported
from tests.support.promtool import FOREIGN, ROOT, metrics_in, promtool, run_promtool, scenario

OBSERVABILITY = ROOT / "deploy" / "compose" / "observability"
RULES = OBSERVABILITY / "rules.yml"
COMPOSE = ROOT / "deploy" / "compose" / "compose.yaml"
PAGE = ROOT / "docs" / "observability.md"

needs_promtool = pytest.mark.skipif(promtool() is None, reason="there is no promtool here: .ci/prometheus brings it")

SERVICES = (
    "relay",
    "apiserver",
    "scheduler",
    "lifecycle",
    "controllermanager",
    "managedseedset",
    "autoscaler",
    "placement",
    "gardenlet",
    "memberagent",
)
MINUTES = 60


def at(service: str, number: int = 1) -> str:
    return f'job="gardenbus", service="{service}", deployment="{service}", instance="10.0.0.{number}:8080"'


def constant(value: float) -> str:
    return f"{value}x{2 * MINUTES}"


def counting(per_minute: float) -> str:
    return f"0+{per_minute}x{2 * MINUTES}"


UP = {service: f"up{{{at(service, number)}}}" for number, service in enumerate(SERVICES)}
REQUESTS = "gardenbus_apiserver_request_duration_seconds_count{%s}"
OK, BROKEN = REQUESTS % 'verb="get", code="200"', REQUESTS % 'verb="get", code="503"'
STARTED = f"process_start_time_seconds{{{at('relay')}}}"
MEMORY = f"process_resident_memory_bytes{{{at('scheduler')}}}"
UNREADABLE = f"gardenbus_unreadable_messages_total{{{at('lifecycle')}}}"
QUEUE = 'gardenbus_consumer_pending_messages{stream="QUEUES", consumer="scheduling-default-scheduler"}'
REDELIVERED = 'gardenbus_consumer_redelivered_messages{stream="QUEUES", consumer="scheduling-default-scheduler"}'
BOUND = 'gardenbus_scheduler_attempts_total{result="bound"}'
BATCHES = "gardenbus_scheduler_batch_seconds_count"
CONFLICT = 'gardenbus_scheduler_attempts_total{result="conflict"}'
WAIT = "gardenbus_scheduler_queue_wait_seconds_bucket{le=%s}"
QUICK, SLOW, ALL = WAIT % '"1"', WAIT % '"60"', WAIT % '"+Inf"'
READY = 'gardenbus_seeds{state="ready", provider="aws", region="eu-west-1"}'
UNKNOWN = 'gardenbus_seeds{state="unknown", provider="aws", region="eu-west-1"}'
USED, PLACES = (f'gardenbus_seeds_shoots_{word}{{provider="aws", region="eu"}}' for word in ("used", "allocatable"))
REQUESTS_AGE = 'gardenbus_stream_oldest_message_age_seconds{stream="REQUESTS"}'
SCALER = '{autoscaler="garden.grove"}'
DESIRED, CURRENT, MOST, PENDING = (
    f"gardenbus_autoscaler_{word}{SCALER}"
    for word in ("desired_replicas", "current_replicas", "max_replicas", "pending_shoots")
)
FAILED_CYCLES = 'gardenbus_placement_cycles_total{outcome="failed"}'
LEADS, STANDS_BY = (f"gardenbus_relay_leading{{{at('relay', number)}}}" for number in (1, 2))
OPERATIONS = 'gardenbus_gardenlet_operation_seconds_count{operation="Create", result="%s"}'
REJECTED = 'gardenbus_rejected_messages_total{reason="Invalid"}'
FULL_DISK = 'gardenbus_server_cannot_write{server="nats"}'
OVER_BUDGET = 'gardenbus_apiserver_over_budget_total{limit="bytesInFlight"}'
AWAY = 'gardenbus_relay_observation_failures_total{server="redis"}'

HEALTHY: Mapping[str, str] = {
    **dict.fromkeys(UP.values(), constant(1)),
    STARTED: constant(1_000_000),
    MEMORY: constant(80e6),
    OK: counting(600),
    BROKEN: counting(1),
    'controller_runtime_reconcile_errors_total{controller="migration"}': counting(1),
    f'workqueue_longest_running_processor_seconds{{name="migration", {at("lifecycle")}}}': constant(0.2),
    f'gardenbus_informer_silent_seconds{{informer="seed", {at("lifecycle")}}}': constant(4),
    UNREADABLE: constant(2),
    QUEUE: constant(0),
    REDELIVERED: constant(0),
    BATCHES: counting(10),
    BOUND: counting(1000),
    CONFLICT: counting(20),
    f"gardenbus_scheduler_batch_age_seconds{{{at('scheduler')}}}": constant(0.01),
    QUICK: counting(99),
    SLOW: counting(100),
    ALL: counting(100),
    "gardenbus_store_waiting_classes": constant(0),
    "gardenbus_store_pending_shoots": constant(0),
    "gardenbus_scheduler_exceptions_total": constant(3),
    "gardenbus_outbox_oldest_entry_age_seconds": constant(0.1),
    LEADS: constant(1),
    STANDS_BY: constant(0),
    REQUESTS_AGE: constant(1),
    REJECTED: constant(7),
    READY: constant(90),
    UNKNOWN: constant(0),
    "gardenbus_lifecycle_leases_late": constant(0),
    "gardenbus_lifecycle_brake_engaged_total": constant(1),
    "gardenbus_lifecycle_seeds_held": constant(0),
    "gardenbus_lifecycle_looks_postponed_total": constant(4),
    "gardenbus_lifecycle_history_current_timestamp_seconds": counting(60),
    USED: constant(80),
    PLACES: constant(100),
    OPERATIONS % "succeeded": counting(30),
    OPERATIONS % "failed": constant(2),
    DESIRED: constant(5),
    CURRENT: constant(5),
    MOST: constant(5),
    PENDING: constant(0),
    f"gardenbus_autoscaler_refused_total{SCALER}": constant(0),
    FAILED_CYCLES: constant(2),
    OVER_BUDGET: counting(3),
    AWAY: constant(2),
    FULL_DISK: constant(0),
    "gardenbus_jetstream_storage_used_bytes": constant(1e9),
    "gardenbus_redis_memory_used_bytes": constant(5e8),
}


class Trouble(NamedTuple):
    """What is other than healthy, and which alerts that must fire, after how many minutes."""

    changes: Mapping[str, str]
    firing: tuple[str, ...]
    minutes: int = 20


TROUBLES: Mapping[str, Trouble] = {
    "all is well": Trouble({}, ()),
    "one of two relays hangs": Trouble(
        {f"up{{{at('relay', 9)}}}": constant(0)},
        ("GardenbusServiceDown",),
    ),
    "no scheduler is there": Trouble({UP["scheduler"]: "1 1 stale"}, ("GardenbusServiceMissing",)),
    "a relay starts again and again": Trouble({STARTED: counting(60)}, ("GardenbusServiceRestarting",)),
    "a scheduler outgrows its container": Trouble({MEMORY: constant(380e6)}, ("GardenbusServiceMemoryHigh",)),
    "every tenth request fails": Trouble({BROKEN: counting(60)}, ("GardenbusApiErrors",)),
    "a controller fails": Trouble(
        {'controller_runtime_reconcile_errors_total{controller="migration"}': counting(30)},
        ("GardenbusReconcileErrors",),
        30,
    ),
    "a look does not end": Trouble(
        {f'workqueue_longest_running_processor_seconds{{name="migration", {at("lifecycle")}}}': counting(60)},
        ("GardenbusWorkStuck",),
    ),
    "an informer is deaf": Trouble(
        {f'gardenbus_informer_silent_seconds{{informer="seed", {at("lifecycle")}}}': counting(60)},
        ("GardenbusInformerSilent",),
    ),
    "somebody publishes what is no object": Trouble({UNREADABLE: counting(1)}, ("GardenbusMessagesUnreadable",)),
    "nobody takes from the queue, though hints are followed": Trouble(
        {QUEUE: constant(12), BATCHES: constant(5)}, ("GardenbusSchedulerStuck",)
    ),
    "much is decided, and much is there": Trouble({QUEUE: constant(5000)}, ()),
    "a batch does not end": Trouble(
        {f"gardenbus_scheduler_batch_age_seconds{{{at('scheduler')}}}": counting(60)}, ("GardenbusSchedulerBatchStuck",)
    ),
    "shoots wait for long": Trouble({QUICK: counting(10)}, ("GardenbusSchedulingSlow",), 30),
    "shoots fit nowhere": Trouble(
        {"gardenbus_store_waiting_classes": constant(2), "gardenbus_store_pending_shoots": constant(40)},
        ("GardenbusShootsUnschedulable",),
        40,
    ),
    "two schedulers fight": Trouble({CONFLICT: counting(800)}, ("GardenbusBindConflicts",), 30),
    "a filter raises": Trouble(
        {"gardenbus_scheduler_exceptions_total": counting(1)}, ("GardenbusSchedulerExceptions",)
    ),
    "nothing is announced": Trouble(
        {"gardenbus_outbox_oldest_entry_age_seconds": counting(60)}, ("GardenbusOutboxLag",)
    ),
    "no relay leads": Trouble({LEADS: constant(0)}, ("GardenbusNoRelayLeads",)),
    "two relays lead": Trouble({STANDS_BY: constant(1)}, ("GardenbusNoRelayLeads",)),
    "requests lie": Trouble({REQUESTS_AGE: constant(300)}, ("GardenbusIntakeLag",)),
    "manifests are refused": Trouble({REJECTED: counting(1)}, ("GardenbusRejections",)),
    "work comes back": Trouble({REDELIVERED: constant(1)}, ("GardenbusRedeliveries",)),
    "one seed is silent": Trouble({UNKNOWN: constant(1)}, ("GardenbusSeedNotReady",)),
    "half of the seeds are silent": Trouble(
        {UNKNOWN: constant(90)}, ("GardenbusManySeedsNotReady", "GardenbusSeedNotReady")
    ),
    "heartbeats are late": Trouble({"gardenbus_lifecycle_leases_late": constant(3)}, ("GardenbusLeasesLate",)),
    "most fall silent together": Trouble({"gardenbus_lifecycle_seeds_held": constant(70)}, ("GardenbusBrakeEngaged",)),
    "the heartbeat probe is not received": Trouble(
        {"gardenbus_lifecycle_looks_postponed_total": counting(30)}, ("GardenbusLifecycleDeaf",)
    ),
    "a region is full": Trouble({USED: constant(95)}, ("GardenbusRegionFull",), 30),
    "seeds without a limit have no fullness": Trouble({PLACES: constant(0)}, (), 30),
    "a shoot fails for good": Trouble({OPERATIONS % "failed": counting(1)}, ("GardenbusOperationsFailed",)),
    "an autoscaler may not": Trouble({PENDING: constant(50)}, ("GardenbusAutoscalerAtMax",)),
    "a set does not grow": Trouble({CURRENT: constant(3)}, ("GardenbusAutoscalerBehind",), 55),
    "placements cannot be decided": Trouble({FAILED_CYCLES: counting(1)}, ("GardenbusPlacementsUndecided",)),
    "a set may not grow": Trouble(
        {f"gardenbus_autoscaler_refused_total{SCALER}": counting(1)}, ("GardenbusAutoscalerRefused",)
    ),
    "redis is away": Trouble({AWAY: counting(6)}, ("GardenbusServerAway",)),
    "messages were lost": Trouble(
        {'gardenbus_relay_lost_messages{stream="REQUESTS"}': constant(7)}, ("GardenbusMessagesLost",)
    ),
    "backups fail": Trouble({"gardenbus_relay_backup_failures_total": counting(1)}, ("GardenbusBackupsFail",)),
    "no point of the history is written": Trouble(
        {"gardenbus_lifecycle_history_current_timestamp_seconds": constant(60)}, ("GardenbusHistoryMissing",), 30
    ),
    "nats cannot write": Trouble({FULL_DISK: constant(1)}, ("GardenbusServerCannotWrite",)),
    "the disk fills": Trouble(
        {"gardenbus_jetstream_storage_used_bytes": constant(9e9)}, ("GardenbusJetStreamDiskFilling",)
    ),
    "somebody sends more than a budget allows": Trouble({OVER_BUDGET: counting(60)}, ("GardenbusOverBudget",)),
    "a Project stores much": Trouble(
        {'gardenbus_budget_used_ratio{limit="storedBytes"}': constant(0.9)}, ("GardenbusStoredNearBudget",)
    ),
    "a stream fills": Trouble(
        {'gardenbus_stream_size_bytes{stream="REPORTS"}': constant(1.9e9)}, ("GardenbusStreamFilling",)
    ),
    "memory fills": Trouble({"gardenbus_redis_memory_used_bytes": constant(1.9e9)}, ("GardenbusRedisMemoryHigh",)),
}


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def paragraphs() -> dict[str, str]:
    """The text below each heading of the third level, by heading."""
    parts = re.split(r"^### (\w+)\n", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@needs_promtool
def test_the_rules_and_what_is_scraped_are_as_prometheus_wants_them(tmp_path: Path):
    assert f"{len(rules())} rules found" in run_promtool("check", "rules", str(RULES))
    configuration = (OBSERVABILITY / "prometheus.yml").read_text()
    copy = tmp_path / "prometheus.yml"
    copy.write_text(configuration.replace("/etc/prometheus/rules.yml", str(RULES)))
    run_promtool("check", "config", str(copy))


@needs_promtool
def test_in_each_trouble_exactly_its_alerts_fire(tmp_path: Path):
    tests = [
        scenario(name, {**HEALTHY, **trouble.changes}, minutes=trouble.minutes, firing=trouble.firing)
        for name, trouble in TROUBLES.items()
    ]
    file = tmp_path / "rules_test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    run_promtool("test", "rules", str(file))


def test_each_alert_has_a_trouble_in_which_it_fires():
    assert {alert for trouble in TROUBLES.values() for alert in trouble.firing} == {rule["alert"] for rule in rules()}


@needs_promtool
def test_what_an_alert_says_names_who_is_concerned(tmp_path: Path):
    expected = {
        "exp_labels": {"severity": "warning", "state": "unknown", "provider": "aws", "region": "eu-west-1"},
        "exp_annotations": {
            "summary": "3 seeds of aws in eu-west-1 are unknown.",
            "runbook_url": "docs/observability.md#gardenbusseednotready",
        },
    }
    tests = {
        "interval": "1m",
        "input_series": [{"series": UNKNOWN, "values": constant(3)}],
        "alert_rule_test": [{"eval_time": "10m", "alertname": "GardenbusSeedNotReady", "exp_alerts": [expected]}],
    }
    file = tmp_path / "rules_test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [tests]}))
    run_promtool("test", "rules", str(file))


def test_each_alert_has_its_paragraph_with_its_severity_and_a_command_to_begin_with():
    announced = paragraphs()
    assert list(announced) == [rule["alert"] for rule in rules()]
    for rule in rules():
        text = announced[rule["alert"]]
        assert text.strip().startswith(f"*{rule['labels']['severity'].capitalize()}.*"), rule["alert"]
        assert "Begin with" in text, rule["alert"]
        assert rule["annotations"]["runbook_url"] == f"docs/observability.md#{rule['alert'].lower()}"


def test_the_commands_of_the_paragraphs_exist():
    verbs = set(re.findall(r"`gardenbus ([a-z]+)", PAGE.read_text()))
    assert len(verbs) > 5
    assert verbs <= set(COMMANDS)


def test_alerts_look_at_what_is_exported():
    names = {metric.name for metrics in exported().values() for metric in metrics}
    for rule in rules():
        assert metrics_in(rule["expr"]) <= names | FOREIGN, rule["alert"]


def test_the_limits_of_the_rules_are_those_of_the_deployment():
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    limits = {name: service["deploy"]["resources"]["limits"]["memory"] for name, service in services.items()}
    by_alert = {rule["alert"]: rule["expr"] for rule in rules()}
    assert limits["scheduler"] == limits["gardenlet-earth"] == "384M"
    assert by_alert["GardenbusServiceMemoryHigh"].endswith("384 * 1024 * 1024")
    assert limits["redis"] == "2G"
    assert by_alert["GardenbusRedisMemoryHigh"].endswith(" 2 * 1024 * 1024 * 1024")
    assert "max_file_store: 10GB" in (COMPOSE.parent / "nats.conf").read_text()
    assert by_alert["GardenbusJetStreamDiskFilling"].endswith(" 10 * 1024 * 1024 * 1024")


def test_every_service_of_ours_is_scraped():
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    ours = {name for name, service in services.items() if service["image"].startswith("gardenbus/")} - {"client"}
    [job] = yaml.safe_load((OBSERVABILITY / "prometheus.yml").read_text())["scrape_configs"]
    [discovery] = job["dns_sd_configs"]
    assert set(discovery["names"]) == ours
    assert discovery["port"] == 8080
