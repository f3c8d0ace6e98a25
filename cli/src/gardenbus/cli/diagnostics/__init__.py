"""Checks of what only this machine can see: processes, their use of it, and its disk."""
