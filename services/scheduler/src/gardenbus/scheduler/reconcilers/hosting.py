"""Seeds that a shoot hosts itself, directly or through others: no place for it."""

from gardenbus.scheduling.outcome import Outcome, Refusal, Rejection, listed

CIRCULAR = "circular"
"""The rule of the store against seeds that the shoot hosts itself."""


def naming(hosted: frozenset[str], outcome: Outcome) -> Outcome:
    """The same, with a refusal that names the seeds which were left out."""
    if not isinstance(outcome, Refusal):
        return outcome
    against = hosted_rejections(hosted)
    return Refusal(outcome.rule, f"{outcome.message}; left out: {listed(against)}", (*outcome.rejections, *against))


def hosted_rejections(hosted: frozenset[str]) -> tuple[Rejection, ...]:
    """What is said of the seeds that a shoot hosts."""
    return tuple(Rejection(seed, CIRCULAR, "it is hosted by this very shoot") for seed in sorted(hosted))
