"""What can be asked of `gardenbus bench`: scenarios by name, sizes, durability. Imports nothing that takes time."""

from enum import StrEnum

import msgspec

from gardenbus.cli.supervisor.durability import Durability


class ScenarioName(StrEnum):
    """The scenarios there are; `catalogue` says what each measures."""

    SCHEDULING = "scheduling"
    INTAKE = "intake"
    STREAM = "stream"
    LATENCY = "latency"
    FLAT = "flat"
    MIXED = "mixed"
    WAITING = "waiting"
    WAKE = "wake"
    REPLICAS = "replicas"
    HEARTBEATS = "heartbeats"
    MEMORY = "memory"
    START = "start"
    PLACEMENT = "placement"


class Wish(msgspec.Struct, frozen=True):
    """What is asked for: None where the scenario's own size counts."""

    seeds: int | None = None
    placed: int | None = None
    shoots: int | None = None
    runs: int | None = None
    reduced: bool = False
    durability: Durability = Durability.PROCESS
