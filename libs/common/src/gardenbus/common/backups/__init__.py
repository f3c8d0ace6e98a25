"""Backups of a landscape: names and chains, what is kept and when one is due (pure); writing, checking, restoring.

What is read from the store, and where files are kept, is behind `ports.backups`. No commands, and no service.
"""
