"""Handlers of callouts and of changes to credentials; they close the connections of those revoked."""
