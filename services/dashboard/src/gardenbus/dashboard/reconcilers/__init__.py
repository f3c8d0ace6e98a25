"""Keeps the view of the landscape current from the bus, tells browsers what changed, and asks the API."""
