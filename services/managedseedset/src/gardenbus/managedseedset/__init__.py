"""Maintains a number of seeds: creates a Shoot and a ManagedSeed for each replica of a set, and deletes them again."""
