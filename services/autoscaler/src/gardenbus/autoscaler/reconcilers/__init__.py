"""Reads what decisions are made on, and carries them out."""
