"""State of a set of seeds in numbers, the input of scaling decisions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil

import msgspec

from gardenbus.common.api.garden.seeds import SHOOTS

Amounts = Mapping[str, Fraction]
"""Resource → amount."""

Capacities = Mapping[Fraction | None, int]
"""Capacity → number of replicas that have it; None: not known, or without a limit."""

NO_AMOUNTS: Amounts = {}


class ReplicaState(msgspec.Struct, frozen=True, kw_only=True):
    """One replica of a set.

    `is_built`: its seed was ready at some time. `is_leaving`: it is being removed. `allocatable` None: its seed never
    reported a capacity. `usage` is the gardenlet's report, by resource, else what is `requested` by the shoots there.
    """

    name: str = ""
    is_built: bool = True
    is_leaving: bool = False
    allocatable: Amounts | None = None
    usage: Amounts = NO_AMOUNTS
    requested: Amounts = NO_AMOUNTS


class SeedSetState(msgspec.Struct, frozen=True, kw_only=True):
    """A set: its spec.replicas, its replicas, and their load.

    `new_seed` is the capacity of a new replica's seed, `shoots` the number on the set's seeds (each once, also under
    migration between two of them), `pending` the unscheduled shoots that would fit a new seed of the set,
    `being_scheduled` those whose scheduling is under way, perhaps onto the set's seeds. `unschedulable` is the reason
    why a shoot of the set's own finds no seed; "" when none waits.
    """

    ordered: int
    replicas: Sequence[ReplicaState] = ()
    new_seed: Amounts = NO_AMOUNTS
    shoots: int = 0
    pending: int = 0
    being_scheduled: int = 0
    unschedulable: str = ""

    @property
    def staying(self) -> Sequence[ReplicaState]:
        """The replicas that are not being removed, those under construction included."""
        return [replica for replica in self.replicas if not replica.is_leaving]

    @property
    def requested(self) -> Amounts:
        """Sums of what the shoots on all its seeds request; one that moves between two of them counts on both."""
        sums: dict[str, Fraction] = {}
        for replica in self.replicas:
            for resource, amount in replica.requested.items():
                sums[resource] = sums.get(resource, Fraction()) + amount
        return sums

    @property
    def count(self) -> int:
        """The replicas that stay, and those that are ordered and do not exist yet."""
        return max(len(self.staying), self.ordered)

    @property
    def building(self) -> int:
        """Those of `count` that cannot accept shoots yet."""
        return self.count - sum(replica.is_built for replica in self.staying)

    @property
    def new_seed_capacity(self) -> int:
        """Shoots that the seed of a new replica accepts; 0 when unknown."""
        return max(ceil(self.new_seed.get(SHOOTS, Fraction())), 0)

    def capacities(self, resource: str) -> Capacities:
        """Capacities of all `count` replicas for a resource; a seed that never was ready counts as a new one.

        Counted, not listed: nothing but its type bounds a set's spec.replicas.
        """
        unknown = self.new_seed.get(resource)
        found = Counter(
            unknown if replica.allocatable is None else replica.allocatable.get(resource) for replica in self.staying
        )
        found[unknown] += self.count - len(self.staying)
        return +found
