"""Notices gardenlets that stopped posting."""
