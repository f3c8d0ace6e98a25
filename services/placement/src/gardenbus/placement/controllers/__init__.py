"""Reconcilers of placements, bindings and evictions: read from the store, decide in `domain` and `fleet`, write."""
