"""HTTP: static files, JSON responses, the stream of changes, and their protection."""
