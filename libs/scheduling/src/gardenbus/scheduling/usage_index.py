"""Shoots per seed, with a log of decreases for orderings that are kept incrementally."""

from collections.abc import Iterable, Mapping

from gardenbus.common.api.garden.scheduling_requirements import Requests
from gardenbus.scheduling.result_cache import ResultCaches

MAX_LOGGED = 100_000
"""Entries of a log that are kept; then every ordering is worked out anew."""

NOTHING: Mapping[str, int] = {}


class UsageIndex(dict[str, int]):
    """Shoots per seed, and what they request of its resources (`taken`).

    An ordering notices an increase by itself when the seed comes first in it; it reads decreases. `decreased` are the
    seeds that have fewer shoots than before, in that order; `assumed` those that a decision has counted a shoot on
    since the last `reconcile`. `touched` are all seeds whose usage was changed, once an ordering reads that. The
    orderings are in `caches`: they go when a log gets too long and is begun anew.
    """

    def __init__(
        self,
        usage: Mapping[str, int] | Iterable[tuple[str, int]] = (),
        requested: Mapping[str, Mapping[str, int]] = {},
    ) -> None:
        super().__init__(usage)
        taken = usage.requested if isinstance(usage, UsageIndex) else requested
        self.requested: dict[str, dict[str, int]] = {seed: dict(sums) for seed, sums in taken.items() if sums}
        self.decreased: list[str] = []
        self.assumed: list[str] = []
        self.touched: list[str] | None = None
        self.caches: ResultCaches = {}

    def __setitem__(self, seed: str, usage: int) -> None:
        if usage < self.get(seed, 0):
            self.decreased.append(seed)
        if self.touched is not None:
            self.touched.append(seed)
        super().__setitem__(seed, usage)

    def __delitem__(self, seed: str) -> None:
        self[seed] = 0

    def taken(self, seed: str) -> Mapping[str, int]:
        """Sums that the shoots of a seed request of its resources."""
        return self.requested.get(seed, NOTHING)

    def assume(self, seed: str, requests: Requests = ()) -> None:
        """Count one more shoot on a seed, with what it requests there."""
        self.assumed.append(seed)
        if self.touched is not None:
            self.touched.append(seed)
        super().__setitem__(seed, self.get(seed, 0) + 1)
        if requests:
            self._take(seed, requests, 1)

    def move(self, source: str, target: str, requests: Requests = ()) -> None:
        """Count a shoot on another seed ("": none)."""
        for seed, sign in ((source, -1), (target, 1)):
            if seed:
                self._take(seed, requests, sign)
                self[seed] = max(self.get(seed, 0) + sign, 0)

    def _take(self, seed: str, requests: Requests, sign: int) -> None:
        sums = self.requested.setdefault(seed, {}) if requests else {}
        for resource, amount in requests:
            sums[resource] = max(sums.get(resource, 0) + sign * amount, 0)

    def reconcile(
        self,
        observed: Mapping[str, int],
        changed: Iterable[str],
        requested: Mapping[str, Mapping[str, int]] = {},
    ) -> None:
        """Set the changed seeds, and all that were assumed on, to the usage and the requests that were observed."""
        decreased, usage_of, store = self.decreased, self.get, super().__setitem__
        for seeds in (self.assumed, changed):
            for seed in seeds:
                usage, before = observed.get(seed, 0), usage_of(seed, 0)
                if usage < before:
                    decreased.append(seed)
                store(seed, usage)
                is_touched = usage != before
                if seed in self.requested or seed in requested:
                    taken = dict(requested.get(seed, NOTHING))
                    is_touched = is_touched or taken != self.requested.get(seed)
                    self.requested[seed] = taken
                if is_touched and self.touched is not None:
                    self.touched.append(seed)
        self.assumed.clear()
        if len(decreased) > MAX_LOGGED or len(self.touched or ()) > MAX_LOGGED:
            decreased.clear()
            self.touched = None
            self.caches.clear()
