"""Finds a seed for each pending shoot."""
