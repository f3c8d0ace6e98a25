"""Keeps a number of seeds: orders a Shoot and a ManagedSeed for each replica of a set, and takes them away again."""
