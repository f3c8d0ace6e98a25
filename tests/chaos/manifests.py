"""Manifests of the landscape that is tried: seeds with little room, member clusters, and what clients order. Pure."""

import json
from collections.abc import Sequence
from typing import Any

from tests.chaos.invariants import REQUIREMENTS, VALUE_ANNOTATION
from tests.support.builders import CORE, a_cloudprofile, a_project, a_shoot

NAMESPACE = "garden-dev"
PLACED_NAMESPACE = "placed"
PLACED = "parcel"
SEEDS_A_PROCESS = 2
GARDENLET_PROCESSES = 3
MEMBER_PROCESSES = 2
MEMBERS_A_PROCESS = 2
CAPACITY = 5
STRANGER = "stranger"
STRANGER_REGION = "region-2"
REGIONS = ("region-0", "region-1", STRANGER_REGION)
OTHER_SCHEDULER = "mine"
A_GROUP = 3
"""Shoots that are kept apart from each other: as many as their region has seeds."""

Document = dict[str, Any]


def gardenlets(process: int) -> Sequence[Document]:
    """Configurations of one gardenlet process, for seeds in different regions."""
    return [_gardenlet(process * SEEDS_A_PROCESS + number) for number in range(SEEDS_A_PROCESS)]


def _gardenlet(number: int) -> Document:
    return {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "resources": {"capacity": {"shoots": CAPACITY}},
        "controllers": {"seed": {"leaseResyncSeconds": 1}},
        "backend": {"type": "local", "stepSeconds": 0.01},
        "seedConfig": {"metadata": {"name": f"seed-{number}"}, "spec": _spec(f"region-{number % 2}")},
    }


def _spec(region: str) -> Document:
    return {"provider": {"type": "aws", "region": region, "zones": ["a"]}}


def stranger_seed() -> Document:
    """The Seed that a stranger's gardenlet registers."""
    return {"apiVersion": CORE, "kind": "Seed", "metadata": {"name": STRANGER}, "spec": _spec(STRANGER_REGION)}


def members(process: int) -> Sequence[Document]:
    """The configuration of one member agent process."""
    names = [f"member-{process * MEMBERS_A_PROCESS + number}" for number in range(MEMBERS_A_PROCESS)]
    return [
        {
            "apiVersion": "memberagent.config.gardenbus.io/v1alpha1",
            "kind": "MemberAgentConfiguration",
            "metadata": {"name": f"agent-{process}"},
            "heartbeatPeriodSeconds": 5,
            "backend": {"type": "local", "availableSeconds": 0},
            "clusters": [{"metadata": {"name": name}} for name in names],
        }
    ]


def member_names() -> Sequence[str]:
    """All member clusters."""
    return [f"member-{number}" for number in range(MEMBER_PROCESSES * MEMBERS_A_PROCESS)]


def beginning() -> Sequence[Document]:
    """What is there before anybody orders anything."""
    placement = {
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacement",
        "metadata": {"name": PLACED},
        "spec": {
            "resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": PLACED_NAMESPACE}],
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "100%", "unavailablePeriodSeconds": 0},
            },
        },
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACED_NAMESPACE}}
    return [a_project(name="dev", namespace=NAMESPACE), a_cloudprofile(), namespace, parcel(0), placement]


def parcel(value: int) -> Document:
    """What is placed on the member clusters."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": PLACED,
            "namespace": PLACED_NAMESPACE,
            "annotations": {VALUE_ANNOTATION: str(value)},
        },
        "data": {"value": str(value)},
    }


def shoot(name: str, region: str, value: int) -> Document:
    """A shoot; the value is in an annotation, and in a field whose change has it reconciled."""
    document = a_shoot(name=name, namespace=NAMESPACE, spec={"region": region})
    document["metadata"]["annotations"] = annotations(value)
    document["spec"]["provider"]["workers"][0]["maximum"] = maximum(value)
    return document


def other_scheduler() -> Document:
    """Configuration of a second scheduler: another profile, on the same landscape."""
    return {
        "apiVersion": "scheduler.config.gardener.cloud/v1alpha1",
        "kind": "SchedulerConfiguration",
        "profiles": [{"schedulerName": OTHER_SCHEDULER, "preset": "spread"}],
    }


def kept_apart(document: Document, group: str, number: int) -> Document:
    """A shoot that is on no seed with another one of its group, placed by one of the two schedulers."""
    term = {"group": group, "topologyKey": "seed"}
    rules = {"groups": [group], "affinity": {"shootAntiAffinity": {"required": [term]}}}
    document["metadata"]["annotations"][REQUIREMENTS] = json.dumps(rules)
    if number % 2:
        document["spec"]["schedulerName"] = OTHER_SCHEDULER
    return document


def annotations(value: int) -> dict[str, str]:
    """The annotations of a value."""
    return {VALUE_ANNOTATION: str(value), "confirmation.gardener.cloud/deletion": "true"}


def maximum(value: int) -> int:
    """The size of a worker pool, by the value."""
    return 3 + value % 5
