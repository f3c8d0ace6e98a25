"""Keeps a number of seeds: orders a Shoot and a ManagedSeed for each replica, and takes them away again."""
