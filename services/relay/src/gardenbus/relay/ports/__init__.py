"""Ports that only the relay uses."""
