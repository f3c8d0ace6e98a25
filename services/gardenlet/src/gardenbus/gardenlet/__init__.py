"""Carries placements out on seeds: registers a Seed, renews its Lease, runs its shoots, reports. Speaks to the bus alone.

Never touches the store, and decides nothing about where a shoot goes.
"""
