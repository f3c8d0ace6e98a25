"""The scores of a profile, by what they depend on: the class and the seed, or what is used on the seed."""

from collections.abc import Sequence

from gardenbus.common.api.garden.scheduling_profiles import WeightedScore


class ScoreTable:
    """Scores in the profile's order. `usage_key` is equal for tables whose usage scores are."""

    def __init__(self, plugins: Sequence[WeightedScore] = ()) -> None:
        self.plugins = tuple(plugins)
        self.static = tuple(each for each in self.plugins if not each.reads_usage)
        self.of_usage = tuple(each for each in self.plugins if each.reads_usage)
        self.usage_key = repr(self.of_usage) if self.plugins else ""

    def __bool__(self) -> bool:
        """True where scores choose among seeds, false where the fewest shoots do."""
        return bool(self.plugins)


NO_SCORES = ScoreTable()
