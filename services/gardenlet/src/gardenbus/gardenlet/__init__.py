"""Carries placements out on seeds: registers Seeds, renews their Leases, runs shoots, reports. Speaks to the bus alone.

Never touches the store, and decides nothing about where a shoot goes.
"""
