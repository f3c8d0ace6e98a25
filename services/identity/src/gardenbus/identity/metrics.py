"""Metrics of the identity service."""

from prometheus_client import Counter

CALLOUTS = Counter("gardenbus_callouts", "Authentication requests of connections, by outcome.", ["outcome"])
CERTIFICATES = Counter("gardenbus_certificates", "Signing requests of client certificates, by outcome.", ["outcome"])
KICKED = Counter("gardenbus_kicked_connections", "Connections that were closed: their credentials were withdrawn.")
OVER_BUDGET = Counter("gardenbus_over_budget_connections", "Connections that were closed: beyond their user's budget.")
