"""Logins, and the authorizer of reads."""
