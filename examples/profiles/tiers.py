"""A plug-in of schedulers that is installed beside them: seeds of the tier that fits the purpose of a shoot score high.

Its package has the entry point `tiers = "tiers:Tiers"` in the group `gardenbus.scheduler.plugins`, and the profile
`Installed/tiers` among its scores.
"""

from collections.abc import Mapping
from typing import Any


class Tiers:
    """Gold for production and not for testing, silver for the rest."""

    def filter(self, shoot: Mapping[str, str], seed: Mapping[str, Any]) -> str | None:
        """Reject what is not for testing."""
        is_gold = _tier(seed) == "gold"
        return "seeds of tier gold are not for testing" if is_gold and shoot["purpose"] == "testing" else None

    def score(self, shoot: Mapping[str, str], seed: Mapping[str, Any]) -> int:
        """Score the tier: 100 where it is the wanted one, 40 where a seed has none."""
        wanted = "gold" if shoot["purpose"] == "production" else "silver"
        return {wanted: 100, "": 40}.get(_tier(seed), 0)


def _tier(seed: Mapping[str, Any]) -> str:
    labels: Mapping[str, str] = seed["metadata"].get("labels") or {}
    return labels.get("tier", "")
