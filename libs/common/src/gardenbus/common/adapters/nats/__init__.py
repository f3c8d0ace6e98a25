"""Adapters on NATS JetStream."""
