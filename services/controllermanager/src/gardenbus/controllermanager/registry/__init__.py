"""Writes of the loops over Shoots: requests through admission, and the status."""
