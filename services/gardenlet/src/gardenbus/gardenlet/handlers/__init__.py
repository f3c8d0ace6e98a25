"""Handlers of the gardenlet: the cache of bindings, the Lease heartbeat, and the reporters."""
