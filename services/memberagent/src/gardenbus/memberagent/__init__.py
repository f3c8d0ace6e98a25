"""Speaks for member clusters: heartbeats, properties, and the Works addressed to them."""
