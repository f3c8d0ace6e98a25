"""Definition of loops, what enqueues for them by changes and by the clock, and contents of namespaces."""
