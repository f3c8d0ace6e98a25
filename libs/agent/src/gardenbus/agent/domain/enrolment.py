"""Seeds as member clusters: the manifest that a Seed is enrolled with, and its state."""

from typing import Any, cast

from gardenbus.agent.domain.cluster_facts import ClusterFacts
from gardenbus.agent.domain.documents import mappings
from gardenbus.agent.domain.registration import fingerprinted, identity_of
from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.seeds import GARDENLET_READY

SEED_ANNOTATION = "memberagent.gardenbus.io/seed"
"""Annotation of a MemberCluster that a Seed was enrolled as: the Seed's name."""

REGION_LABEL = "topology.kubernetes.io/region"
ZONE_LABEL = "topology.kubernetes.io/zone"
PROVIDER_LABEL = "memberagent.gardenbus.io/provider"
ZONES_PROPERTY = "memberagent.gardenbus.io/zones"


def enrolment(seed: Document, *, period_seconds: int) -> Document:
    """MemberCluster of a Seed: its labels and taints, region, zone and provider."""
    name = str(section(seed, "metadata").get("name"))
    provider = section(seed, "spec", "provider")
    zones = _zones(seed)
    labels = {key: str(value) for key, value in section(seed, "metadata", "labels").items()}
    for label, value in (
        (REGION_LABEL, provider.get("region")),
        (PROVIDER_LABEL, provider.get("type")),
        (ZONE_LABEL, zones[0] if len(zones) == 1 else None),
    ):
        if value:
            labels[label] = str(value)
    taints = [
        {"key": str(taint["key"]), "value": str(taint.get("value") or ""), "effect": "NoSchedule"}
        for taint in mappings(section(seed, "spec"), "taints")
        if taint.get("key")
    ]
    return fingerprinted(
        {
            "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
            "kind": "MemberCluster",
            "metadata": {"name": name, "labels": labels, "annotations": {SEED_ANNOTATION: name}},
            "spec": {"identity": identity_of(name), "heartbeatPeriodSeconds": period_seconds, "taints": taints},
        }
    )


def seed_facts(seed: Document, measured: ClusterFacts) -> ClusterFacts:
    """State of a Seed as a cluster: silent without its gardenlet's heartbeat, unhealthy while that is not ready.

    Of what its backend has measured, everything counts; the Seed's status is for what it has not.
    """
    ready = get_condition(conditions_of(seed), GARDENLET_READY) or {}
    status = section(seed, "status")
    capacity = _quantities(section(status, "capacity"))
    allocatable = _quantities(section(status, "allocatable"))
    usage = {"capacity": capacity, "allocatable": allocatable, "available": allocatable}
    is_ready = ready.get("status") == "True"
    return ClusterFacts(
        properties={ZONES_PROPERTY: str(len(_zones(seed))), **measured.properties},
        usage={**usage, **measured.usage},
        namespaces=measured.namespaces,
        problem=measured.problem
        if is_ready
        else str(ready.get("message") or "The gardenlet reports that it is not ready."),
        healthy_message="The gardenlet of the seed is ready.",
        is_silent=ready.get("status") not in ("True", "False"),
    )


def _zones(seed: Document) -> list[str]:
    zones: Any = section(seed, "spec", "provider").get("zones")
    return [str(zone) for zone in cast("list[Any]", zones)] if isinstance(zones, list) else []


def _quantities(values: Document) -> dict[str, str]:
    return {str(name): str(value) for name, value in values.items()}
