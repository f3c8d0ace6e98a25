"""Keeps cached usage that of the store's present history."""
