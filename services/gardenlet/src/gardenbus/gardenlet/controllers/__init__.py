"""Reconcilers of the gardenlet: its Seed, shoots and ManagedSeeds."""
