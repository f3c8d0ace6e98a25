"""Peers beside Gardenbus, on the same manifests: programs that drive the peers' own code."""
