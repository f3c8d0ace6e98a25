"""Writes of the loops: requests through admission, and updates on the version that was read."""
