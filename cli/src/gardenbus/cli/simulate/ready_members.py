"""Member clusters as they would be once their agents ran: what `simulate` makes of MemberAgentConfigurations. Pure."""

from collections.abc import Iterable, Sequence

from gardenbus.agent.domain.cluster_facts import ClusterFacts, configured_facts, joined_patch
from gardenbus.agent.domain.enrolment import enrolment, seed_facts
from gardenbus.agent.domain.registration import member_cluster_manifest
from gardenbus.cli.manifests.files import MEMBER_AGENT_CONFIGURATION
from gardenbus.cli.simulate.ready_seeds import with_ready_seeds
from gardenbus.common.api.configuration.member_agent import (
    ClusterSettings,
    MemberAgentConfiguration,
    parse_configurations,
)
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.fleet.rows import cluster_row
from gardenbus.fleet.eligibility import instant

LONG_AGO = "2000-01-01T00:00:00Z"
"""Instant of clusters' heartbeats where no manifest has one: any would do."""


def with_ready_members(documents: Sequence[Document]) -> list[Document]:
    """The manifests with each MemberAgentConfiguration replaced by the clusters that it speaks for.

    They have joined, are healthy, and were heard last of all. Seeds are enrolled where a configuration says so.
    Raises SettingsInvalid.
    """
    now = max((cluster_row(document).heartbeat or LONG_AGO for document in documents), key=instant, default=LONG_AGO)
    found: list[Document] = []
    for document in documents:
        if document.get("kind") != MEMBER_AGENT_CONFIGURATION:
            found.append(document)
            continue
        for configuration in parse_configurations(encode(document)):
            found += (_ready(cluster, configuration, now) for cluster in configuration.clusters)
            if configuration.enrol_seeds:
                found += _enrolled(with_ready_seeds(documents), configuration, now)
    return found


def _ready(cluster: ClusterSettings, configuration: MemberAgentConfiguration, now: str) -> Document:
    facts = configured_facts(cluster, ClusterFacts(namespaces=dict.fromkeys(cluster.namespaces, "")))
    return _joined(member_cluster_manifest(cluster, period_seconds=configuration.heartbeat_period_seconds), facts, now)


def _enrolled(seeds: Iterable[Document], configuration: MemberAgentConfiguration, now: str) -> Iterable[Document]:
    for seed in seeds:
        if seed.get("kind") == "Seed":
            facts = seed_facts(seed, ClusterFacts())
            manifest = enrolment(seed, period_seconds=configuration.heartbeat_period_seconds)
            yield manifest if facts.is_silent else _joined(manifest, facts, now)


def _joined(manifest: Document, facts: ClusterFacts, now: str) -> Document:
    return {**manifest, "status": joined_patch(manifest, facts, now=now)}
