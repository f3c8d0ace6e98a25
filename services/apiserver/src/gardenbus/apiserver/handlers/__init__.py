"""Handlers of requests and reports: they read a message, have the registry write, and respond or acknowledge."""
