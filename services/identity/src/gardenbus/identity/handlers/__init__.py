"""Handlers of callouts and of changes to credentials."""
