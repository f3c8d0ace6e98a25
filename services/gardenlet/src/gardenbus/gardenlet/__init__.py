"""Carries placements out on one seed, reports, and renews its Lease."""
