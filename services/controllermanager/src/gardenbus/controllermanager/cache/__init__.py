"""Caches of the informer, by what loops look things up."""
