"""Descheduling: plans moves of placed shoots. Carrying them out belongs to services and the command line."""
