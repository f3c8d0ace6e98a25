"""`up -f` schedules nothing while the seeds and member clusters of its files are still getting ready."""

from collections.abc import Sequence

import pytest

from gardenbus.cli.manifests.files import sort_manifests
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import seed_row
from gardenbus.embedded.detached import remarks_in
from gardenbus.embedded.start_order import Unready, in_phases, unready_clusters, unready_seeds, until_agents_ready
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_region_configmap, a_seed, a_shoot


def a_document(kind: str, name: str = "one") -> Document:
    return {"apiVersion": "x/v1", "kind": kind, "metadata": {"name": name}}


def kinds(documents: Sequence[Document]) -> list[str]:
    return [str(each["kind"]) for each in documents]


def test_what_is_scheduled_waits_and_all_else_does_not():
    given = [
        *(a_document(kind) for kind in ("ManagedSeedSet", "SeedAutoscaler", "ManagedSeed", "ClusterResourcePlacement")),
        *(a_document(kind) for kind in ("ResourcePlacement", "MemberCluster", "Deployment", "Secret", "BackupBucket")),
        a_shoot(),
        a_seed(),
        a_project(),
        a_cloudprofile(),
        a_region_configmap(),
    ]

    phases = in_phases(sort_manifests(given).manifests)

    assert sorted(kinds(phases.scheduled)) == [
        "ClusterResourcePlacement",
        "ManagedSeed",
        "ManagedSeedSet",
        "ResourcePlacement",
        "SeedAutoscaler",
        "Shoot",
    ]
    assert len(phases.at_once) + len(phases.scheduled) == len(given)
    assert kinds(phases.scheduled)[0] == "Shoot"


def test_a_seed_is_waited_for_until_shoots_can_be_scheduled_to_it():
    silent = a_seed("silent", status={"conditions": [a_condition("GardenletReady", "Unknown", message="no lease")]})
    bare = a_seed("bare", spec={"backup": {"provider": "aws"}})
    new = a_seed("new", status={"conditions": []})
    rows = [seed_row(each) for each in (silent, bare, new, a_seed("ready"), a_seed("of-somebody-else"))]

    assert unready_seeds(["ready", "silent", "bare", "new", "missing"], rows) == [
        ("seed bare", "its backup bucket is not ready"),
        ("seed missing", "its gardenlet has not registered it"),
        ("seed new", "its condition GardenletReady is missing"),
        ("seed silent", "no lease"),
    ]


def test_a_member_cluster_is_waited_for_until_it_has_joined():
    joined = a_document("MemberCluster", "joined") | {"status": {"conditions": [a_condition("Joined")]}}
    leaving = a_document("MemberCluster", "leaving") | {"status": {"conditions": [a_condition("Joined", "False")]}}

    assert unready_clusters(["joined", "leaving", "missing"], [joined, leaving]) == [
        ("member cluster leaving", "it has not joined"),
        ("member cluster missing", "it has not joined"),
    ]


class Agents:
    """Agents that become ready one after another, one a poll."""

    def __init__(self, *unready: str) -> None:
        self.unready = [Unready(name, "new") for name in unready]
        self.polls = 0

    async def get_ready(self) -> Sequence[Unready]:
        self.polls += 1
        return self.unready[self.polls - 1 :]

    async def hang(self) -> Sequence[Unready]:
        self.polls += 1
        return self.unready


async def test_the_wait_is_announced_once_and_ends_with_the_last_agent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gardenbus.embedded.start_order.POLL_SECONDS", 0)
    agents, lines = Agents("seed a", "seed b"), list[str]()

    await until_agents_ready(agents.get_ready, lines.append, rest=60)

    assert lines == [
        "Waiting at most 30 s for seed a, seed b to become ready; then the remaining 60 manifests will be applied"
    ]
    assert agents.polls == 3


async def test_nothing_is_said_where_nothing_is_waited_for():
    lines = list[str]()

    await until_agents_ready(Agents().get_ready, lines.append, rest=60)

    assert lines == []


async def test_agents_that_never_become_ready_are_named_in_a_warning_after_the_bound():
    agents, lines = Agents(*(f"seed s{number:02}" for number in range(12))), list[str]()

    await until_agents_ready(agents.hang, lines.append, rest=1, seconds=0)

    assert len(lines) == 1
    assert lines[0].startswith("Warning: timed out after 0 s waiting for seed s00 (new), ")
    assert "seed s09 (new) and 2 more; the remaining manifest will be applied all the same" in lines[0]


def test_a_start_in_the_background_passes_on_the_wait_and_warnings_alone():
    log = (
        "   0.1 s  ready: NATS nats://127.0.0.1:1, Redis unix\n"
        "   0.2 s  Waiting at most 30 s for seed a (new); then the remaining 2 manifests will be applied\n"
        "  30.2 s  Warning: timed out after 30 s waiting for seed a (new)\n"
        "  30.3 s  shoot Waiting was rejected: Warning\n"
        "  30.4 s  Warning: cut in ha"
    )

    assert remarks_in(log) == [
        "Waiting at most 30 s for seed a (new); then the remaining 2 manifests will be applied",
        "Warning: timed out after 30 s waiting for seed a (new)",
    ]
