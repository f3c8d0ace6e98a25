"""Gardener's kinds as values: documents, metadata rules, typed views. No I/O, clock or randomness."""
