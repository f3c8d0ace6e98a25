"""Handlers of the gardenlet: the cache of bindings, the Lease heartbeat, reporters, ShootStates and requests."""
