"""SHELL: the loops of one gardenlet. They listen, ask `decide`, let the backend work and report."""
