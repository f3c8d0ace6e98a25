"""Admission, defaulting and versions of every object that comes from outside."""
