"""Shoots that break a rule between shoots where they are, and scheduling gates that somebody may have forgotten."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.state_collector import collect_state
from gardenbus.cli.migrations.violations import BrokenRule, plan_violations
from gardenbus.cli.output.columns import age_of
from gardenbus.cli.output.console import counted
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.scheduling_requirements import resolved_of
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.diagnostics.findings import DiagnosticFinding, some_of
from gardenbus.diagnostics.target import DiagnosticsTarget

RULES, SCHEDULING_GATES = "rules between shoots", "scheduling gates"

FORGOTTEN_AFTER = timedelta(hours=1)
"""Age of a shoot from which its gates may have been forgotten: gates are set when it is created."""

MOST_SHOOTS = 20_000
"""Shoots of a landscape up to which all are read: a check that takes longer than 20 s would count as failed."""


async def scheduling(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Check the shoots of a landscape that is not too large to read."""
    shoots = (await target.api.census()).get("objects.shoot", 0)
    rebalance = target.command("rebalance --violations")
    if shoots > MOST_SHOOTS:
        return [DiagnosticFinding(RULES, "skipped", f"there are {shoots} shoots: `{rebalance}` reads them all")]
    api = ApiClient(target.api.bus, target.api.subjects)
    documents = await api.items("shoot")
    broken: Sequence[BrokenRule] = ()
    if any(resolved_of(each).group_rules for each in documents):
        from gardenbus.scheduling.installed_filters import load_filters  # noqa: PLC0415  half a second

        seen = await collect_state(api, load_filters(), shoots=documents)
        broken = plan_violations(seen.shoots, seen.snapshot, max_moves=0)
    return [*assess_rules(broken, rebalance), *assess_gates(documents, datetime.now(UTC))]


def assess_rules(broken: Sequence[BrokenRule], command: str) -> list[DiagnosticFinding]:
    """Warn of shoots that break a rule; none where all keep theirs."""
    if not broken:
        return []
    break_one = "breaks" if len(broken) == 1 else "break"
    named = some_of(f"{each.namespace}/{each.name} on {each.seed} ({each.rule})" for each in broken)
    found = f"{counted(len(broken), 'shoot')} {break_one} a rule that they state: {named}"
    return [DiagnosticFinding(RULES, "warning", found, f"`{command}` plans their moves, and --apply makes them")]


def assess_gates(shoots: Sequence[Document], now: datetime) -> list[DiagnosticFinding]:
    """Warn of shoots whose gates keep them from being scheduled for long, the oldest first."""
    old: list[tuple[datetime, str]] = []
    for shoot in shoots:
        gates = resolved_of(shoot).gates
        metadata = section(shoot, "metadata")
        created = parse_timestamp(metadata.get("creationTimestamp"))
        if not gates or section(shoot, "spec").get("seedName") or metadata.get("deletionTimestamp"):
            continue
        if created is not None and now - created >= FORGOTTEN_AFTER:
            age = age_of(metadata.get("creationTimestamp"), now)
            old.append((created, f"{metadata.get('namespace')}/{metadata.get('name')} for {age} ({', '.join(gates)})"))
    if not old:
        return []
    wait = "waits" if len(old) == 1 else "wait"
    found = f"{counted(len(old), 'shoot')} {wait} for scheduling gates: {some_of(text for _, text in sorted(old))}"
    advice = "whoever set a gate takes it out of scheduling.gardenbus.io/requirements, or deletes the shoot"
    return [DiagnosticFinding(SCHEDULING_GATES, "warning", found, advice)]
