"""Servers, identities and loads of a measurement, the steps that scenarios share, and checks of the outcome."""
