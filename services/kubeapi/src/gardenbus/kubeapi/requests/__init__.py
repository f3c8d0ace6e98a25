"""Handlers of requests: reads, watches, writes, reviews."""
