"""Scores: rank feasible seeds by distance, then by usage. Whether a seed is feasible belongs in `filters`."""
