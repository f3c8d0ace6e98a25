"""Options of `gardenbus bench`: scenarios by name, sizes, durability. Imports nothing that takes time."""

from enum import StrEnum

import msgspec

from gardenbus.embedded.durability import Durability


class ScenarioName(StrEnum):
    """The scenarios; `catalogue` describes what each measures."""

    SCHEDULING = "scheduling"
    APPLY = "intake"
    STREAM = "stream"
    LATENCY = "latency"
    FAIRNESS = "fairness"
    PLUGIN = "plugin"
    FLAT = "flat"
    MEMORY = "memory"
    START = "start"
    PLACEMENT = "placement"
    IDENTITIES = "identities"


class BenchProfile(StrEnum):
    """Profiles of the scheduler that a scenario may be measured with."""

    WEIGHTED = "weighted"


class BenchOptions(msgspec.Struct, frozen=True):
    """Sizes that the user chose: None where the scenario's own size counts."""

    seeds: int | None = None
    placed: int | None = None
    shoots: int | None = None
    runs: int | None = None
    reduced: bool = False
    durability: Durability = Durability.PROCESS
    profile: BenchProfile | None = None
