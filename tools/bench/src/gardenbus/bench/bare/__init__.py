"""Bare."""
