"""Summaries of shoots and sets: rows with what only the command line shows of them. Pure."""

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.rows import SetRow, ShootRow, number, set_fields, shoot_fields, text


class ShootSummary(ShootRow, frozen=True):
    """A shoot's row with its generations and the state of its operation."""

    generation: int
    observed_generation: int
    operation_state: str

    @property
    def is_rejected(self) -> bool:
        """True when a scheduler found no feasible seed, even if the shoot is deleting by now."""
        return not self.seed and (self.operation, self.operation_state) == ("Create", "Pending")

    @property
    def is_reconciled(self) -> bool:
        """True when its gardenlet has applied the present generation."""
        return (
            bool(self.seed)
            and not self.is_deleting
            and self.operation_state == "Succeeded"
            and self.observed_generation == self.generation
        )


class SetSummary(SetRow, frozen=True):
    """A set's row with the generation that its controller has observed."""

    is_observed: bool

    @property
    def is_converged(self) -> bool:
        """True when all replicas are ready, and none is in progress."""
        return self.is_observed and not self.pending_replica and self.wanted == self.replicas == self.ready


def summarize_shoot(document: Document) -> ShootSummary:
    """Return the summary of a Shoot."""
    metadata, status = section(document, "metadata"), section(document, "status")
    operation = section(status, "lastOperation")
    return ShootSummary(
        **shoot_fields(document),
        generation=number(metadata.get("generation")),
        observed_generation=number(status.get("observedGeneration")),
        operation_state=text(operation.get("state")),
    )


def summarize_set(document: Document) -> SetSummary:
    """Return the summary of a ManagedSeedSet."""
    observed = number(section(document, "status").get("observedGeneration"))
    is_observed = observed == number(section(document, "metadata").get("generation"))
    return SetSummary(**set_fields(document), is_observed=is_observed)
