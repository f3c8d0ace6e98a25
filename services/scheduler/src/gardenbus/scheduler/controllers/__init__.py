"""Reconcilers: shoots that need a seed, and unschedulable shoots after cluster events. Nothing else."""
