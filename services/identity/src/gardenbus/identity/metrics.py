"""Metrics of the identity service."""

from prometheus_client import Counter

CALLOUTS = Counter("gardenbus_callouts", "Connections that asked to come in, by outcome.", ["outcome"])
