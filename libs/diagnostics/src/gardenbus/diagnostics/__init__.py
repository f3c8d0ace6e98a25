"""Diagnostics of a landscape, for `gardenbus doctor` and the dashboard: servers, streams, work, rejected messages.

Each module of checks examines one part, and assesses what it found by pure functions.
Logins of the dashboard belong here too, since the command line makes links for it.
"""
