"""Pure: who a connection is, and what it may do."""
