"""Contexts: landscapes by name in a config file, files of credentials, and contexts of the `nats` command."""
