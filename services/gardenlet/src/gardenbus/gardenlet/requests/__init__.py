"""Handlers of requests that the apiserver relays to a seed."""
