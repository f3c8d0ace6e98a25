"""What a run of the fuzzer found, and how it went."""

import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PAGE = 4096
SHOWN = 12
MEGABYTE = 1024 * 1024
MOST_GROWTH = 48 * MEGABYTE
"""Growth of memory, once caches are full, that is no leak."""


@dataclass(frozen=True)
class Finding:
    """Something that must not happen: where, and the first input that did it."""

    place: str
    what: str
    number: int
    sample: str


@dataclass
class Findings:
    """Findings of a run, one a place, with its outcomes, its slowest input and its memory."""

    inputs: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    found: dict[str, Finding] = field(default_factory=dict[str, Finding])
    times: Counter[str] = field(default_factory=Counter[str])
    slowest: tuple[float, int] = (0.0, -1)
    memory: list[int] = field(default_factory=list[int])

    def add(self, finding: Finding) -> None:
        """Note a finding; of those at one place, the first is kept."""
        self.found.setdefault(finding.place, finding)
        self.times[finding.place] += 1

    def add_exception(self, error: BaseException, number: int, sample: str) -> None:
        """Note an exception, at the innermost line of our own."""
        self.add(Finding(place_of(error), f"{type(error).__name__}: {str(error)[:200]}", number, sample))

    def add_all(self, other: "Findings") -> None:
        """Add those of another process, which ran at the same time."""
        self.inputs += other.inputs
        self.seconds = max(self.seconds, other.seconds)
        self.processor_seconds += other.processor_seconds
        self.outcomes += other.outcomes
        for place, finding in other.found.items():
            self.found.setdefault(place, finding)
        self.times += other.times
        self.slowest = max(self.slowest, other.slowest)
        self.memory = [max(pair) for pair in zip(self.memory, other.memory, strict=False)] or other.memory

    def lines(self) -> Sequence[str]:
        """As text."""
        rate = self.inputs / (self.processor_seconds or self.seconds or 1)
        of_what = " of a core" if self.processor_seconds else ""
        taken = self.outcomes["taken"]
        outcomes = ", ".join(f"{count} {name}" for name, count in self.outcomes.most_common())
        memory = " → ".join(f"{size / MEGABYTE:.0f}" for size in _thinned(self.memory))
        return [
            f"{self.inputs} inputs in {self.seconds:.0f} s, {rate:.0f} a second{of_what}; {taken} taken",
            f"outcomes: {outcomes}",
            f"slowest: {self.slowest[0] * 1000:.1f} ms (number {self.slowest[1]})",
            f"memory in MB: {memory}",
            f"findings: {sum(self.times.values())} at {len(self.found)} places",
            *(_described(finding, self.times[place]) for place, finding in list(self.found.items())[:SHOWN]),
        ]


def _described(finding: Finding, times: int) -> str:
    return f"- {times} x {finding.what}\n  at {finding.place}; first: number {finding.number}: {finding.sample}"


def _thinned(values: Sequence[int]) -> Iterable[int]:
    return values if len(values) <= SHOWN else values[:: len(values) // SHOWN]


def place_of(error: BaseException) -> str:
    """File and line of an exception: the innermost line of the project."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "gardenbus" in frame.filename or "/tests/" in frame.filename] or frames
    frame = ours[-1]
    return f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno} ({type(error).__name__})"


def resident_bytes(pid: int | str = "self") -> int:
    """Memory of a process that is in use."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def growth(memory: Sequence[int]) -> int:
    """Bytes by which memory grew over the last two thirds of a run, between the means of their halves."""
    later = memory[len(memory) // 3 :]
    half = len(later) // 2
    if not half:
        return 0
    return sum(later[half:]) // (len(later) - half) - sum(later[:half]) // half
