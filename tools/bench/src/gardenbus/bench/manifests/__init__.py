"""Manifests to measure with: seeds and Shoots, member clusters and placements. Pure."""
