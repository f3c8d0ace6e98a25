"""Diagnostics of a landscape, for `gardenbus doctor` and the dashboard: servers, streams, work, rejected messages.

Each module of checks examines one part, and assesses what it found by pure functions.
"""
