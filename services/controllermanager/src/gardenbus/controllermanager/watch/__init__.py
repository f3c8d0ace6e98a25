"""Enqueuers of the loops, by changes and by the clock, and caches of what loops look up."""
