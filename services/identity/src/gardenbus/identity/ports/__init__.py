"""Ports that only identity uses."""
