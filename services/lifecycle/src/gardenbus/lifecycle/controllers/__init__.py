"""Reconcilers: silent Seeds, shoots under migration, and what runs on Seeds unknown to the store."""
