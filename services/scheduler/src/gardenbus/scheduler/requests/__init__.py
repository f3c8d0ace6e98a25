"""Handlers of requests: explanations of shoots and of seeds."""
