"""Handlers of the member agent: its ports, requests and reports."""
