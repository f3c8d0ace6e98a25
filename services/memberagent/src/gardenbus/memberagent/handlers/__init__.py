"""Handlers of the member agent: the cache of its cluster, requests and reports."""
