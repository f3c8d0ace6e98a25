"""Ports on real servers: the only importers of redis and nats."""
