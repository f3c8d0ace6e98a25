"""Local landscapes: the state directory, health of processes, files of Redis' and static users, and authorities."""
