"""Protocols of what services need from outside, and the values that cross them. No logic."""
