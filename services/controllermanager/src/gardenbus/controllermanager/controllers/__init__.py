"""Loops: a module for each, with its queue, what enqueues for it, and its reconciler."""
