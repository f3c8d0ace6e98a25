"""Enqueuer of sets, and the state that a decision about a set reads."""
