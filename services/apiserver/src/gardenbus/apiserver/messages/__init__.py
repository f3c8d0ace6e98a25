"""Handlers of durable requests, reports and inventories: messages of JetStream that are acknowledged."""
