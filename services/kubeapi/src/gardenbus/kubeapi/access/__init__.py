"""Logins, and rights to read."""
