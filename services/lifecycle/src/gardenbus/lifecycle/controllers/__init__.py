"""Reconcilers: silent Seeds, and shoots under migration."""
