"""Backends that shoots run on: the ports, what all of them share, and the makers that are the gardenlet's own."""
