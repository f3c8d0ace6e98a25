"""Handler of NATS' auth callouts."""
