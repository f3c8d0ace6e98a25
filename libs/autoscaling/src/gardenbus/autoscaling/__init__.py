"""Decisions about the number of seeds in a set, and their simulation. Pure: shared by the autoscaler and the client."""
