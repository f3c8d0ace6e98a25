"""What a decision is made on: a set of seeds as it stood at one moment, in numbers."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil

import msgspec

from gardenbus.common.resources.seeds import SHOOTS

Amounts = Mapping[str, Fraction]
"""Resource → amount."""

NOTHING: Amounts = {}


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """One replica of a set.

    `is_built`: its seed was ready at some time. `is_leaving`: it is being removed. `allocatable` None: its seed never
    said what it can hold. `usage` is what its gardenlet reports, by resource.
    """

    name: str = ""
    is_built: bool = True
    is_leaving: bool = False
    allocatable: Amounts | None = None
    usage: Amounts = NOTHING


class SetOfSeeds(msgspec.Struct, frozen=True, kw_only=True):
    """A set: its spec.replicas, its replicas, and what there is for them to hold.

    `new_seed` is what the seed of a new replica could hold, `shoots` counts the shoots on the set's seeds (each once,
    also one that moves between two of them), `pending` those that wait for a seed and would fit a new one of the set,
    `coming` those that are being placed just now, some of them perhaps on the set's seeds. `unschedulable` says why a
    shoot of the set's own finds no seed; "" when none waits.
    """

    ordered: int
    replicas: Sequence[Replica] = ()
    new_seed: Amounts = NOTHING
    shoots: int = 0
    pending: int = 0
    coming: int = 0
    unschedulable: str = ""

    @property
    def staying(self) -> Sequence[Replica]:
        """The replicas that are not being removed, those being built included."""
        return [replica for replica in self.replicas if not replica.is_leaving]

    @property
    def count(self) -> int:
        """The replicas that stay, and those that are ordered and not there yet."""
        return max(len(self.staying), self.ordered)

    @property
    def building(self) -> int:
        """How many of `count` cannot take shoots yet."""
        return self.count - sum(replica.is_built for replica in self.staying)

    @property
    def places_of_new_seed(self) -> int:
        """How many shoots the seed of a new replica takes; 0 when that is not known."""
        return max(ceil(self.new_seed.get(SHOOTS, Fraction())), 0)

    def rooms(self, resource: str) -> Sequence[Fraction | None]:
        """What each of `count` replicas can hold of a resource, None where nobody says.

        A seed that never was ready counts with what a new one could hold.
        """
        unknown = self.new_seed.get(resource)
        rooms = [
            unknown if replica.allocatable is None else replica.allocatable.get(resource) for replica in self.staying
        ]
        return rooms + [unknown] * (self.count - len(rooms))
