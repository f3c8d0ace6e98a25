"""What a gardenlet sends: reports, heartbeats, ShootStates, lookups, and requests to extensions."""
