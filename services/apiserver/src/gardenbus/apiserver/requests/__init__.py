"""Handlers of API requests, one method a verb, and the requests for consumers of outsiders."""
