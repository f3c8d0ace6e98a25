"""Scheduler: finds a seed for each pending shoot."""
