"""SHELL: reads sets and their replicas, has `decide` decide, and carries it out."""
