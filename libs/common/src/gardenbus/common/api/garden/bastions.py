"""Bastions as their gardenlet reports them. Source: Gardener's `pkg/gardenlet/controller/bastion`."""

BASTION_READY = "BastionReady"
"""Condition of a Bastion."""

BASTION_DELETED = "Deleted"
"""Its reason once nothing is left of the host of a Bastion that is being deleted."""
