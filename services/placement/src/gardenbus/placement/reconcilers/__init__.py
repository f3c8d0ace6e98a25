"""SHELL: reads placements and what belongs to them, has the pure decisions made, and writes what comes of them."""
