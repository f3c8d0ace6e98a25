"""Loops: a module for each, with its queue, its reconciler, and how both are built."""
