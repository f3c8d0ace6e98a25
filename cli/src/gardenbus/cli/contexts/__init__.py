"""Contexts."""
