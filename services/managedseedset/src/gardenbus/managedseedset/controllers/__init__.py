"""The reconciler of ManagedSeedSets."""
