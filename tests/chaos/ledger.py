"""Ledger: what the landscape has acknowledged to its clients, and so what must be found. Pure."""

from dataclasses import dataclass, field
from typing import Literal

State = Literal["wanted", "deleted"]


@dataclass
class Entry:
    """One object. `tried` is the value of an order whose fate is not known; an acknowledgement settles it."""

    value: int = 0
    state: State = "wanted"
    tried: int | None = None
    tried_deletion: bool = False
    is_moving: bool = False

    @property
    def may_go(self) -> bool:
        """True once somebody has requested its deletion, whether acknowledged or not."""
        return self.state == "deleted" or self.tried_deletion


@dataclass
class Ledger:
    """All objects of all clients, by namespace and name."""

    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    acknowledged: int = 0

    def trying(self, name: str, value: int) -> None:
        """An apply is about to be sent."""
        self.entries.setdefault(name, Entry(value=-1)).tried = value

    def applied(self, name: str, value: int) -> None:
        """An apply was acknowledged."""
        entry = self.entries[name]
        entry.value, entry.tried = value, None
        self.acknowledged += 1

    def trying_to_delete(self, name: str) -> None:
        """A deletion is about to be sent."""
        self.entries[name].tried_deletion = True

    def deleted(self, name: str) -> None:
        """A deletion was acknowledged."""
        self.entries[name].state = "deleted"
        self.acknowledged += 1

    def wanted(self) -> dict[str, Entry]:
        """Objects that must be there."""
        return {name: each for name, each in self.entries.items() if each.state == "wanted" and each.value >= 0}

    def forget_gone(self, stored: set[str]) -> None:
        """Drop what was deleted and is gone, so that a long run does not collect it."""
        for name in [name for name, each in self.entries.items() if each.state == "deleted" and name not in stored]:
            del self.entries[name]
