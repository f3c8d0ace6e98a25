"""Local landscapes: the state directory, the health of its processes, and the files with the users of Redis."""
