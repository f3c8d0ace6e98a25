"""Senders of a gardenlet: reports, heartbeats, ShootStates, lookups, and requests to extensions."""
