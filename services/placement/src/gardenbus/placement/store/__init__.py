"""Reads and writes of the store that several controllers share."""
