"""Reconcilers of the gardenlet: Seed, shoots, ManagedSeeds and ShootStates."""
