"""Patches: a document, and what a patch makes of it."""
