"""The identity service: NATS' auth callout."""
