"""Event handlers of informer and change streams: they enqueue requests, and write nothing."""
